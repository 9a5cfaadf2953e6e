"""Checks that the tokenizer knows a sentence in every language of the model."""

from .._core import Error
from ..tts import TTS
from .report import Result, skipped

SENTENCES = {
    "ar": "الطقس جميل اليوم، هل نذهب إلى الحديقة؟",
    "da": "Vejret er godt i dag, skal vi gå ud i haven?",
    "de": "Das Wetter ist heute schön, gehen wir in den Garten?",
    "el": "Ο καιρός είναι ωραίος σήμερα, πάμε στον κήπο;",
    "en": "The weather is fine today, shall we go into the garden?",
    "es": "Hoy hace buen tiempo, ¿vamos al jardín?",
    "fi": "Tänään on kaunis sää, mennäänkö puutarhaan?",
    "fr": "Il fait beau aujourd'hui, allons-nous au jardin ?",
    "he": "מזג האוויר נאה היום, נלך לגן?",
    "hi": "आज मौसम अच्छा है, क्या हम बगीचे में चलें?",
    "it": "Oggi il tempo è bello, andiamo in giardino?",
    "ja": "今日は天気がいいので、庭に行きましょうか。",
    "ko": "오늘 날씨가 좋은데 정원에 갈까요?",
    "ms": "Cuaca hari ini baik, mari kita pergi ke taman.",
    "nl": "Het weer is mooi vandaag, gaan we de tuin in?",
    "no": "Været er fint i dag, skal vi gå ut i hagen?",
    "pl": "Dziś jest ładna pogoda, idziemy do ogrodu?",
    "pt": "Hoje o tempo está bom, vamos ao jardim?",
    "ru": "Сегодня хорошая погода, пойдём в сад?",
    "sv": "Vädret är fint idag, ska vi gå ut i trädgården?",
    "sw": "Hali ya hewa ni nzuri leo, twende bustanini?",
    "tr": "Bugün hava güzel, bahçeye gidelim mi?",
    "zh": "大家好，你们今天好吗？",
}
UNKNOWN = "[UNK]"


def tokenised(tts: TTS) -> Result:
    """Tokens of a sentence in each language, none of which may be unknown to the tokenizer.

    A language whose package is not installed is passed over, with its reason. A tokenizer of bytes
    knows every text.
    """
    name = "languages"
    counts: dict[str, int] = {}
    missing: dict[str, str] = {}
    failed: dict[str, str] = {}
    unknown_id = tts._tokenizer._tokenizer.token_to_id(UNKNOWN)
    if unknown_id is None:
        return skipped(name, "to this model's tokenizer no text is unknown: it spells bytes")
    for language in tts.languages:
        try:
            tokens = tts.tokenize(SENTENCES[language], language)
        except Error as error:
            reasons = missing if isinstance(error.__cause__, ImportError) else failed
            reasons[language] = str(error)
            continue
        counts[language] = len(tokens)
        unknown = tokens.tolist().count(unknown_id)
        if unknown:
            failed[language] = f"{unknown} of {len(tokens)} tokens are unknown"
    if not counts and not failed:
        return skipped(name, "; ".join(missing.values()))
    good = len(set(counts) - set(failed))
    figure = f"{good} of {len(tts.languages)} tokenise"
    if missing:
        figure += f", skipped: {', '.join(missing)}"
    notes = [f"{code} skipped: {reason}" for code, reason in missing.items()]
    notes += [f"{code}: {reason}" for code, reason in failed.items()]
    values = {"tokens": counts, "skipped": missing, "failed": failed}
    return Result(name, figure, "all, no token unknown", not failed, values, tuple(notes))
