"""What is said in place of something that is not read."""

_CODE_BLOCK = {
    "ar": "تم تخطي مقطع برمجي",
    "da": "Kodeblok udeladt",
    "de": "Codeblock ausgelassen",
    "el": "Το τμήμα κώδικα παραλείπεται",
    "en": "Code block omitted",
    "es": "Bloque de código omitido",
    "fi": "Koodilohko ohitettu",
    "fr": "Bloc de code omis",
    "he": "קטע קוד הושמט",
    "hi": "कोड खंड छोड़ा गया",
    "it": "Blocco di codice omesso",
    "ja": "コードブロックは省略します",
    "ko": "코드 블록 생략",
    "ms": "Blok kod ditinggalkan",
    "nl": "Codeblok weggelaten",
    "no": "Kodeblokk utelatt",
    "pl": "Pominięto blok kodu",
    "pt": "Bloco de código omitido",
    "ru": "Блок кода пропущен",
    "sv": "Kodblock utelämnat",
    "sw": "Sehemu ya msimbo imerukwa",
    "tr": "Kod bloğu atlandı",
    "zh": "代码块已省略",
}


def code_block(language: str) -> str:
    """The announcement of code that is left out; in English for a language that has none."""
    return _CODE_BLOCK.get(language, _CODE_BLOCK["en"])
