"""Words written with a full stop that need not end a sentence, by language.

Entries stand without their last stop; inner stops may be followed by a space in the text ("z.B"
also reads "z. B."). An entry with a capital is one only when written with it.
"""

import re
from dataclasses import dataclass
from functools import cache

# What a stop after the word says about the sentence:
NEVER = "never"  # it goes on: titles, "e.g."
NUMBER = "number"  # it goes on before a number: "No. 5", "p. 12", "Nov. 3"
LAST = "last"  # a capital starts a new one: "etc."
EITHER = "either"  # names may follow: only a word that often starts sentences starts a new one

_KINDS = (NEVER, NUMBER, LAST, EITHER)

_COMMON = {
    NEVER: "Dr Mr Mrs Ms Prof St vs cf e.g i.e approx",
    NUMBER: "No Nos Nr fig figs vol vols p pp ch",
    LAST: "etc",
    EITHER: "a.m p.m Inc Ltd Co Corp Jr Sr al Ph.D",
}

_BY_LANGUAGE: dict[str, dict[str, str]] = {
    "en": {
        NEVER: "Messrs Mmes Mt Ft Gen Col Sgt Capt Cpl Pvt Lt Cmdr Maj Adm Rev Hon Sen Rep "
        "Gov Pres Supt Fr viz incl excl resp a.k.a i.a ca",
        NUMBER: "c no nos nr art sec para eq ex Jan Feb Mar Apr Jun Jul Aug Sept Sep Oct Nov "
        "Dec Mon Tue Tues Wed Thu Thur Thurs Fri Sat Sun ed",
        EITHER: "St Ave Blvd Rd Ln Hwy Bros dept est min hr hrs sq oz lb lbs ft Esq",
    },
    "de": {
        NEVER: "z.B z.Bsp d.h d.i bzw ca vgl evtl ggf inkl exkl insb insbes sog bspw Hr Hrn "
        "Fr Frl Dipl Ing Mag Hl geb gest dt engl franz lat griech allg i.d.R m.E u.U "
        "z.T z.Zt v.a s.o s.u a.a.O mind zzgl abzgl bes od Frh Gebr Tel n.n.b u",
        NUMBER: "nr S Abs Art Bd Kap Abb Tab Aufl Jg Nrn Rn Ziff Jan Feb Mär Apr Jun Jul Aug "
        "Sep Sept Okt Nov Dez Kl",
        LAST: "usw usf u.s.w u.v.m uvm u.dgl",
        EITHER: "u.a u.ä o.ä Str Mio Mrd Tsd Jh Jhd Std Min Sek v.Chr n.Chr v.u.Z n.u.Z e.V "
        "a.D a.M Chr jr sen max",
    },
    "fr": {
        NEVER: "M MM Mme Mmes Mlle Mlles Pr Me Ste p.ex c.-à-d env av apr ex tél bd boul réf "
        "Vve Mgr",
        NUMBER: "no nos art chap pag t janv févr avr juil sept oct nov déc",
        EITHER: "J.-C s.v.p S.A S.A.R.L éd coll max min Cie",
    },
    "es": {
        NEVER: "Sr Sres Sra Sras Srta Srtas Dra D Dña Lic Ing Arq Gral Cnel Mons Sto Sta Fr "
        "Hno Hna p.ej av Avda tel tfno aprox máx mín Ntra",
        NUMBER: "pág págs núm núms art arts cap párr ene feb mar abr may jun jul ago sept oct "
        "nov dic",
        EITHER: "Ud Uds Vd Vds EE.UU S.A S.L a.C d.C Cía Ltda ed",
    },
    "it": {
        NEVER: "sig sigg dott prof ing avv arch geom rag on S p.es es ca tel c.a Mons Gen",
        NUMBER: "pag pagg n nn art artt cap gen feb mar apr mag giu lug ago set sett ott nov "
        "dic sec",
        LAST: "ecc",
        EITHER: "a.C d.C S.p.A S.r.l max min",
    },
    "pt": {
        NEVER: "Sr Srs Sra Sras Srta Dra Drs Profa D Eng p.ex av R aprox máx mín tel Exmo "
        "Exma Sto Sta Pe Gen Cel V",
        NUMBER: "pág págs pag n nº art cap séc jan fev mar abr mai jun jul ago set out nov dez",
        EITHER: "Exa a.C d.C Ltda S.A Cia ed",
    },
    "nl": {
        NEVER: "dhr mevr mw dr drs ir ing mr prof bijv bv d.w.z o.a m.a.w t.a.v "
        "i.p.v i.v.m t.o.v m.b.t n.a.v ca incl excl ds jhr resp vgl zgn",
        NUMBER: "nr blz pag art hfst jan feb mrt apr jun jul aug sep sept okt nov dec",
        LAST: "enz",
        EITHER: "e.d jl a.s v.Chr n.Chr mln mld N.V B.V max min",
    },
    "sv": {
        NEVER: "t.ex bl.a d.v.s dvs ca s.k p.g.a fr.o.m t.o.m resp dr prof hr fr tel ang jfr "
        "inkl exkl ev f.d f.n o.dyl kungl",
        NUMBER: "kl nr sid s kap art jan feb apr jun jul aug sept okt nov dec",
        LAST: "osv o.s.v m.m m.fl",
        EITHER: "f.Kr e.Kr kr st milj",
    },
    "da": {
        NEVER: "f.eks bl.a d.v.s dvs ca hr fr dr prof pga p.g.a ift jf mht evt inkl ekskl tlf "
        "sml kgl ang vedr hhv pr Sct Skt iflg",
        NUMBER: "kl nr s kap art stk jan feb mar apr jun jul aug sep sept okt nov dec",
        LAST: "osv o.s.v m.m mv m.v m.fl o.l",
        EITHER: "f.Kr e.Kr kr mio mia st min maks",
    },
    "no": {
        NEVER: "f.eks bl.a d.v.s dvs ca hr fr dr prof pga p.g.a iht jf mht evt inkl ekskl tlf "
        "ang vedr hhv pr kgl",
        NUMBER: "kl nr s kap art jan feb mar apr jun jul aug sep sept okt nov des",
        LAST: "osv o.s.v m.m mv m.v m.fl o.l",
        EITHER: "f.Kr e.Kr kr mill mrd st min maks",
    },
    "fi": {
        NEVER: "esim mm n ks vrt ns os tri prof hra rva nti fil puh toim synt ml ko po em t.s "
        "maist",
        NUMBER: "s nro v klo",
        LAST: "ym yms jne tms",
        EITHER: "eKr jKr e.Kr j.Kr milj mrd",
    },
    "pl": {
        NEVER: "np tzn tj tzw m.in ul pl św prof dr hab inż mgr ks gen płk kpt abp bp pt wg "
        "ur zm tel red tłum zob Sz al",
        NUMBER: "nr str godz s t poz rozdz art ust pkt rys tab ok",
        LAST: "itd itp",
        EITHER: "r w p.n.e n.e tys zł gr min sek im os",
    },
    "ru": {
        NEVER: "т.е т.к т.н т.о ул просп пл пер обл акад проф доц д-р гр напр ср т.наз св о "
        "тов корп ред изд г-н г-жа д кв к пос дер р тел",
        NUMBER: "№ гл рис табл стр с п ч т ст разд янв февр мар апр июн июл авг сент окт нояб дек",
        LAST: "т.д т.п др пр",
        EITHER: "г гг в вв н.э руб коп тыс млн млрд см мм км кг мин сек чел экз у.е им",
    },
    "el": {
        NEVER: "κ κα κος κκ δρ π.χ δηλ λ.χ βλ Αγ καθ καθηγ τηλ υπ Αφοί περ πρβλ",
        NUMBER: "αρ αριθ σελ κεφ τομ άρθ εικ Ιαν Φεβ Μαρ Απρ Ιουν Ιουλ Αυγ Σεπ Οκτ Νοε Δεκ",
        LAST: "κ.λπ κλπ κ.τ.λ κτλ κ.ά κ.ο.κ",
        EITHER: "π.μ μ.μ π.Χ μ.Χ Α.Ε Ο.Ε",
    },
    "tr": {
        NEVER: "Doç Av Sn Yrd Arş Öğr Gör Uzm Op Ecz Müh Alb Gen örn bkz yak M.Ö M.S T.C "
        "Hz krş ör Bn By",
        NUMBER: "s sf sn no md böl şek",
        LAST: "vb vs vd",
        EITHER: "Cad Sok Mah Apt Şti A.Ş yy",
    },
    "ms": {
        NEVER: "En Pn Tn spt cth Jln Kg",
        NUMBER: "hlm bil no",
        LAST: "dll dsb",
        EITHER: "Bhd S.M T.M Sdn",
    },
    "sw": {
        NEVER: "Bw Bi Dkt Mhe k.m k.v",
        NUMBER: "uk Na",
        LAST: "n.k nk",
        EITHER: "K.K B.K",
    },
    "hi": {
        NEVER: "डॉ श्री प्रो पं स्व कु एड मो कि ले मे ए बी सी डी ई एफ जी एच आई जे के एल एम एन "
        "ओ पी आर एस टी यू वी",
        NUMBER: "रु रू सं क्र पृ नं",
        EITHER: "कि.मी मि.मी से.मी कि.ग्रा ई.पू",
    },
    "ar": {
        NEVER: "د أ م أ.د",
        NUMBER: "ص ج ط س",
        EITHER: "هـ ق.م إلخ الخ ق.ظ ب.ظ",
    },
    "he": {
        NEVER: "פרופ",
        NUMBER: "עמ מס",
        LAST: "וכו",
    },
}

# Capitalised words that start sentences far more often than names: they tell "in the U.S. The ..."
# from "the U.S. Army", and "es waren 20. Dann ..." from "am 20. Mai".
_STARTERS = {
    "en": "The A An This That These Those He She It They We You I His Her Its Their Our My "
    "Your There Here In On At By For From To With Without After Before When While "
    "Where Why How What Who Which Whose If Although Though Because Since As Until But "
    "And Or So Yet Nor However Then Thus Therefore Moreover Also Now Once Only Both "
    "Each Every Some Many Most All Another Other No Not Yes Please Let Do Does Did Is "
    "Are Was Were Can Could Will Would Should May Has Have Had One Two Perhaps Maybe "
    "Still Even Later Today Yesterday Tomorrow Meanwhile Finally First Next Just "
    "Nobody Everyone Nothing Something",
    "de": "Der Die Das Den Dem Des Ein Eine Einen Einem Einer Er Sie Es Wir Ihr Ich Du Man "
    "Dies Diese Dieser Dieses Jede Jeder Jedes Und Oder Aber Denn Doch Sondern Dann "
    "Danach Davor Dabei Daher Darum Deshalb Trotzdem Dort Da Hier Heute Gestern Morgen "
    "Jetzt Nun Im In Am An Auf Aus Bei Mit Nach Von Vor Zu Zum Zur Für Über Unter "
    "Durch Gegen Ohne Um Wenn Weil Als Ob Obwohl Während Wie Was Wer Wo Warum Wann "
    "Welche Nicht Kein Keine Auch Nur Noch Schon So Sein Seine Ihre Mein Meine Unser "
    "Alle Viele Einige Ja Nein Bitte Danke Später Zuerst Schließlich Ist Sind War "
    "Waren Hat Haben Kann",
    "fr": "Le La Les L Un Une Des Du De Il Elle Ils Elles On Nous Vous Je J Tu Ce C Cet "
    "Cette Ces Cela Ça Mais Et Ou Donc Or Ni Car Puis Ensuite Alors Ainsi Enfin Dans "
    "En Sur Sous Avec Sans Pour Par Après Avant Depuis Pendant Quand Lorsque Si Comme "
    "Qui Que Qu Quoi Où Pourquoi Comment Quel Quelle Son Sa Ses Mon Ma Mes Notre Leur "
    "Leurs Aujourd Hier Demain Maintenant Ici Là Tout Tous Toutes Chaque Plusieurs Oui "
    "Non Est S N D À Au Aux Cependant Pourtant",
    "es": "El La Los Las Un Una Unos Unas Él Ella Ellos Ellas Yo Tú Usted Nosotros Esto Este "
    "Esta Estos Estas Ese Esa Eso Pero Y O Así Entonces Luego Después Antes Cuando Si "
    "Como Porque Aunque Mientras En Con Sin Por Para De Del Desde Hasta Sobre Según Al "
    "A Qué Quién Dónde Cómo Cuándo Su Sus Mi Mis Nuestro Hoy Ayer Mañana Ahora Aquí "
    "Allí No Sí También Todo Todos Cada Muchos Es Son Fue Era Hay Se Le Me Nos",
    "it": "Il Lo La I Gli Le L Un Uno Una Lui Lei Loro Noi Voi Io Tu Egli Questo Questa "
    "Questi Queste Quello Quella Ma E Ed O Così Allora Poi Dopo Prima Quando Se Come "
    "Perché Anche Mentre In Con Senza Per Di Del Della Da Dal Dalla Su Nel Nella A Al "
    "Alla Che Chi Dove Cosa Quale Suo Sua Mio Mia Oggi Ieri Domani Ora Qui Non Sì "
    "Tutto Tutti Ogni Molti È Era Sono Fu Ha C Si",
    "pt": "O A Os As Um Uma Ele Ela Eles Elas Eu Tu Você Nós Isto Isso Este Esta Esse Essa "
    "Mas E Ou Assim Então Depois Antes Quando Se Como Porque Embora Enquanto Em No Na "
    "Nos Nas Com Sem Por Para De Do Da Desde Até Sobre Ao À Que Quem Onde Seu Sua Meu "
    "Minha Hoje Ontem Amanhã Agora Aqui Não Sim Também Tudo Todos Cada Muitos É Era "
    "Foi São Há",
    "nl": "De Het Een Hij Zij Ze Wij We Jij Je U Ik Dit Dat Deze Die Maar En Of Dus Want "
    "Toen Dan Daarna Daarom Daar Hier Nu In Op Aan Bij Met Zonder Voor Van Uit Naar Om "
    "Over Onder Door Na Als Hoewel Omdat Terwijl Wanneer Wie Wat Waar Waarom Hoe Welke "
    "Zijn Haar Mijn Ons Hun Vandaag Gisteren Morgen Niet Geen Ook Alle Veel Er Is Was "
    "Ja Nee Later",
    "sv": "En Ett Den Det De Han Hon Vi Ni Jag Du Man Denna Detta Dessa Men Och Eller Så "
    "Sedan Därefter Därför Där Här Nu I På Vid Med Utan För Från Till Om Över Under "
    "Efter Innan När Medan Som Vem Vad Var Varför Hur Vilken Hans Hennes Min Vår Idag "
    "Igår Imorgon Inte Också Alla Många Ja Nej Är Senare",
    "da": "En Et Den Det De Han Hun Vi I Jeg Du Man Denne Dette Disse Men Og Eller Så "
    "Derefter Derfor Der Her Nu På Ved Med Uden For Fra Til Om Over Under Efter Før "
    "Når Mens Som Hvem Hvad Hvor Hvorfor Hvordan Hvilken Hans Hendes Min Vores Dag "
    "Ikke Også Alle Mange Ja Nej Er Senere Da",
    "no": "En Et Ei Den Det De Han Hun Vi Dere Jeg Du Man Denne Dette Disse Men Og Eller Så "
    "Deretter Derfor Der Her Nå I På Ved Med Uten For Fra Til Om Over Under Etter Før "
    "Når Mens Som Hvem Hva Hvor Hvorfor Hvordan Hvilken Hans Hennes Min Vår Ikke Også "
    "Alle Mange Ja Nei Er Senere Da",
    "fi": "Se Ne Hän He Me Te Minä Sinä Tämä Nämä Tuo Nuo Mutta Ja Tai Vaan Sitten Siksi "
    "Siellä Täällä Tässä Nyt Kun Jos Vaikka Koska Kuka Mikä Missä Miksi Miten Milloin "
    "Hänen Sen Minun Meidän Tänään Eilen Huomenna Ei En Eivät Myös Kaikki Monet On Oli "
    "Olen Kyllä Myöhemmin",
    "pl": "On Ona Ono Oni One My Wy Ja Ty To Ten Ta Te Ci Ale I A Albo Lub Więc Potem "
    "Następnie Dlatego Tam Tu Tutaj Teraz W We Na Przy Z Ze Bez Dla Od Do O Nad Pod Po "
    "Przed Przez Kiedy Gdy Jeśli Jeżeli Choć Ponieważ Jak Kto Co Gdzie Dlaczego Który "
    "Jego Jej Ich Mój Nasz Dziś Dzisiaj Wczoraj Jutro Nie Tak Też Wszyscy Wiele Jest "
    "Był Była Było Są Później",
    "ru": "Он Она Оно Они Мы Вы Я Ты Это Этот Эта Эти Тот Та Те Но И А Или Зато Потом Затем "
    "Поэтому Там Здесь Тут Теперь В Во На При С Со Без Для От До О Об Над Под По Перед "
    "Через Когда Если Хотя Потому Как Кто Что Где Почему Зачем Который Его Её Их Мой "
    "Наш Сегодня Вчера Завтра Не Нет Да Также Все Всё Многие Был Была Было Были Есть "
    "Позже После К У Из За Однако Тогда",
    "el": "Ο Η Το Οι Τα Τον Την Του Της Των Ένας Μια Ένα Αυτός Αυτή Αυτό Αυτά Εγώ Εσύ Εμείς "
    "Αλλά Και Κι Ή Όμως Τότε Μετά Έπειτα Γιατί Εκεί Εδώ Τώρα Στο Στη Στην Στον Στις Με "
    "Χωρίς Για Από Σε Όταν Αν Επειδή Πώς Ποιος Τι Πού Σήμερα Χθες Αύριο Δεν Ναι Όχι "
    "Επίσης Όλοι Είναι Ήταν Θα Να Ύστερα",
    "tr": "Bu Şu O Onlar Biz Siz Ben Sen Bir Ama Fakat Ve Veya Sonra Ardından Bunun Orada "
    "Burada Şimdi Eğer Çünkü Kim Ne Nerede Neden Nasıl Hangi Onun Benim Bizim Bugün "
    "Dün Yarın Hayır Evet Hiç Her Tüm Bütün Çok Daha Ancak Hem Bunlar Böyle",
    "ms": "Dia Ini Itu Saya Kami Kita Mereka Anda Dan Tetapi Tapi Jika Apabila Kerana Dengan "
    "Untuk Di Ke Dari Pada Yang Apa Siapa Sekarang Kemudian Selepas Sebelum Hari Tidak "
    "Ya Ada",
    "sw": "Yeye Hii Hiyo Huyu Hao Sisi Mimi Wewe Na Lakini Kama Kwa Katika Baada Kabla Leo "
    "Jana Kesho Hapana Ndiyo Sasa Kisha Ni Kuna",
}

# In these a number with a stop is an ordinal.
ORDINAL_LANGUAGES = frozenset({"de", "da", "no", "fi", "pl", "tr"})


@dataclass(frozen=True)
class Abbreviations:
    """One language's abbreviations and what often starts its sentences."""

    kinds: dict[str, str]
    dotted: re.Pattern[str]  # those with inner stops; the name of the last group is the kind
    starters: frozenset[str]

    def kind(self, word: str) -> str | None:
        """What a stop after the word means, None if it is no abbreviation."""
        forms = [word]
        if len(word) > 1:  # a single capital is an initial
            forms.append(word[0].lower() + word[1:])
            if word.isupper():
                forms += [word.capitalize(), word.lower()]
        return next((self.kinds[form] for form in forms if form in self.kinds), None)


@cache
def abbreviations(language: str) -> Abbreviations:
    """The table of a language, with those every language uses."""
    kinds: dict[str, str] = {}
    dotted: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for table in (_COMMON, _BY_LANGUAGE.get(language, {})):
        for kind, entries in table.items():
            for entry in entries.split():
                if "." in entry:
                    dotted[kind].append(_spaced(entry))
                else:
                    kinds[entry] = kind
    alternatives = (f"(?P<{kind}>{'|'.join(found)})" for kind, found in dotted.items() if found)
    return Abbreviations(
        kinds,
        re.compile(rf"(?<![\w.])(?:{'|'.join(alternatives)})"),
        frozenset(_STARTERS.get(language, _STARTERS["en"]).split()),
    )


def _spaced(entry: str) -> str:
    """A pattern for an entry with inner stops, its first letter of either case."""
    first, rest = entry[0], entry[1:]
    either_case = f"[{first.lower()}{first.upper()}]" if first.lower() != first.upper() else first
    return either_case + re.escape(rest + ".").replace(r"\.", r"\. ?")[: -len(" ?")]
