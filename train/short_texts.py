"""Texts of a few words, numbers and letters: rare in running text, but what users try first."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

SHORT = {
    "en": """Hi. Hi! Hello. Hello! Hey. Hey there. Hi there. Yes. Yes! No. No! Yeah. Nope. Okay.
        OK. Sure. Oh. Ah. Wow! Please. Thanks. Thank you. Sorry. Stop. Stop! Go. Go on. Wait.
        Help! Bye. Goodbye. Welcome. Good morning. Good evening. Good night. Right. Left. Fine.
        Great! Cool. What? Why? Who? When? Where? How? Really? Now. Later. Never. Always. Maybe.
        Of course. Not yet. I see. I know. I do. We did. You too. Well done. Come in. Come on!
        Be quiet. One. Two. Three. Ready? Done. Next. Done! Test. Testing. True. False. Hello,
        world. Hello, world! Hello, how are you? How are you? Good. Bad. Nice. Look! Listen.
        Open. Close. Start.""",
    "es": """Hola. ¡Hola! Hola, ¿qué tal? Sí. ¡Sí! No. ¡No! Vale. Bueno. Claro. Ya. Ah. Oh.
        ¡Vaya! Gracias. Por favor. Perdón. Adiós. Hasta luego. Bien. Mal. ¿Qué? ¿Quién? ¿Cuándo?
        ¿Dónde? ¿Cómo? ¿Por qué? Ahora. Luego. Nunca. Siempre. Quizás. Hoy. Mañana. Buenos días.
        Buenas tardes. Buenas noches. Uno. Dos. Tres. ¡Para! ¡Ven! Espera. Vamos. Listo. Prueba.
        Hola, mundo. ¡Hola, mundo! ¿Cómo estás? Muy bien. Lo sé. Ven aquí. Tú también. Aquí.
        Allí.""",
    "fr": """Bonjour. Bonjour! Salut. Salut! Oui. Oui! Non. Non! Bon. Bien. Ah. Oh. Ouf! Merci.
        Pardon. Adieu. Bonsoir. Bonne nuit. Au revoir. Quoi? Qui? Quand? Où? Comment? Pourquoi?
        Combien? Ici. Là. Maintenant. Jamais. Toujours. Peut-être. D'accord. Voilà. Stop! Viens.
        Allez! Attends. Un. Deux. Trois. Prêt? Fini. Essai. Demain. Hier. Bonjour, le monde.
        Bonjour, ça va? Ça va? Ça va. Très bien. Je sais. Moi aussi. Bien sûr. S'il te plaît.""",
    "it": """Ciao. Ciao! Salve. Sì. Sì! No. No! Bene. Male. Ah. Oh. Ecco. Grazie. Prego. Scusa.
        Addio. Buongiorno. Buonasera. Buonanotte. Che cosa? Chi? Quando? Dove? Come? Perché?
        Quanto? Qui. Là. Ora. Dopo. Mai. Sempre. Forse. Va bene. Certo. Basta! Vieni. Aspetta.
        Andiamo. Uno. Due. Tre. Pronto? Fatto. Prova. Domani. Ieri. Oggi. Ciao, mondo. Ciao,
        come stai? Come stai? Molto bene. Lo so. Anch'io. Per favore. Aiuto! Avanti. Davvero?""",
    "pt": """Oi. Oi! Olá. Olá! Sim. Sim! Não. Não! Bom. Bem. Mal. Ah. Oh. Nossa! Obrigado.
        Obrigada. Desculpe. Tchau. Adeus. Bom dia. Boa tarde. Boa noite. O quê? Quem? Quando?
        Onde? Como? Por quê? Quanto? Aqui. Ali. Agora. Depois. Nunca. Sempre. Talvez. Hoje.
        Amanhã. Ontem. Tá bom. Claro. Pare! Vem. Espere. Vamos. Um. Dois. Três. Pronto? Feito.
        Teste. Olá, mundo. Oi, tudo bem? Tudo bem? Tudo bem. Muito bem. Eu sei. Eu também. Por
        favor. Socorro!""",
}

# {n}: a number that agrees in gender with everything; {year}; {big}
FIGURES = {
    "en": """There were {n} of them. I counted to {n}. It happened in {year}. Only {n} are left,
        I think. From {n} to {n}. Page {n} is missing. Born in {year}, she left in {year}. It
        cost {big} in all. Is it {n} or {n}? Number {n}! Bus {n} is late again. Chapter {n}.
        Room {big}, please. Around {big} came, not {n}.""",
    "es": """Tengo {n} años. Faltan {n} minutos. Ocurrió en {year}. Nació en {year} y murió en
        {year}. Son {n} euros. El número {n}. Solo quedan {n}. De {n} a {n}. La página {n}.
        Vinieron unos {big} en total. ¿Son {n} o {n}? El autobús {n} llega tarde. Capítulo {n}.
        La habitación {big}, por favor.""",
    "fr": """J'ai {n} ans. Il reste {n} minutes. C'était en {year}. Né en {year}, il est parti
        en {year}. Ça fait {n} euros. Le numéro {n}. Il n'en reste que {n}. De {n} à {n}. La
        page {n}. Environ {big} en tout. C'est {n} ou {n}? Le bus {n} est en retard. Chapitre
        {n}. La chambre {big}, s'il vous plaît.""",
    "it": """Ho {n} anni. Mancano {n} minuti. Accadde nel {year}. Nato nel {year}, partì nel
        {year}. Sono {n} euro. Il numero {n}. Ne restano solo {n}. Da {n} a {n}. Pagina {n}.
        Circa {big} in tutto. Sono {n} o {n}? L'autobus {n} è in ritardo. Capitolo {n}. La
        camera {big}, per favore.""",
    "pt": """Tenho {n} anos. Faltam {n} minutos. Aconteceu em {year}. Nasceu em {year} e partiu
        em {year}. São {n} reais. O número {n}. Só restam {n}. De {n} a {n}. Página {n}. Cerca
        de {big} ao todo. São {n} ou {n}? O ônibus {n} está atrasado. Capítulo {n}. O quarto
        {big}, por favor.""",
}
LETTERS = "BCDEFGHIJKLMNOPQRSTUVWXYZ"  # not A, which is a word
ENDINGS = ("", "", "", ".", ".", ".", ".", "!", "?")


def sentences(text: str) -> list[str]:
    """Splits after every full stop, question mark and exclamation mark."""
    return re.findall(r"\S[^.?!]*[.?!]", " ".join(text.split()))


def short_texts(language: str, words: Sequence[str], rng: random.Random) -> Iterator[str]:
    """Endless: short answers, single words out of `words`, numbers in figures and in words,
    letters."""
    short, figures = sentences(SHORT[language]), sentences(FIGURES[language])
    kinds = {
        lambda: rng.choice(short): 30,
        lambda: _word(rng.choice(words), language, rng): 30,
        lambda: _closed(_number(rng), rng): 12,
        lambda: _closed(in_words(_number(rng), language), rng): 12,
        lambda: _filled(rng.choice(figures), rng): 10,
        lambda: _closed(" ".join(rng.sample(LETTERS, rng.randint(1, 4))), rng): 6,
    }
    while True:
        yield rng.choices(list(kinds), list(kinds.values()))[0]()


def _word(word: str, language: str, rng: random.Random) -> str:
    end = rng.choice(ENDINGS)
    opening = {"!": "¡", "?": "¿"}.get(end, "") if language == "es" else ""
    return opening + (word.capitalize() if rng.random() < 0.7 else word) + end


def _closed(text: str, rng: random.Random) -> str:
    return text[0].upper() + text[1:] + rng.choice(("", ".", ".", "."))


def _number(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.5:
        return str(rng.randint(0, 100))
    if kind < 0.7:
        return str(rng.randint(100, 999))
    if kind < 0.85:
        return str(rng.randint(1500, 2040))
    return str(rng.choice((10, 100, 1000)) * rng.randint(1, 99))


def in_words(figure: str, language: str) -> str:
    """A number written out."""
    from num2words import num2words

    words = num2words(int(figure), lang={"pt": "pt_BR"}.get(language, language))
    return words.replace(",", "")


def _filled(template: str, rng: random.Random) -> str:
    slots = {
        "n": lambda: rng.choice([n for n in range(3, 100) if n % 10 > 2]),
        "year": lambda: rng.randint(1700, 2039),
        "big": lambda: rng.choice([n for n in range(103, 1000) if n % 10 > 2]),
    }
    return re.sub(r"\{(\w+)\}", lambda slot: str(slots[slot[1]]()), template)
