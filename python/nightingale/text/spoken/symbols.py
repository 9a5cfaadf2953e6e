"""Rules for signs that are spoken."""

from .engine import Rules
from .language import Language

NEEDED = r"[&@#+=<>≤≥≠≈±×÷→%‰§©/√π∞∑∆*№·−^|~]|\w\.[a-z]"


def before_number_rules(language: Language) -> Rules:
    """Signs that only a number tells apart from ordinary punctuation."""
    word = language.word
    number = r"[-−]?(?:[$£€]\s?)?[0-9]"
    return {
        rf"(?<![\w<])<\s?(?={number})": f"{word['less']} ",
        rf"(?<![\w>-])>\s?(?={number})": f"{word['greater']} ",
        r"(?<!\w)(?:#|№)\s?(?=[0-9])": f"{word['number']} ",
        r"(?<!\w)±\s?(?=[0-9])": f"{word['plus_minus']} ",
        rf"(?<![\w~])[~≈∼]\s?(?={number})": f"{word['about']} ",
        r"(?<![\w+])\+(?=[0-9])": f"{word['plus']} ",
        # "10 : 2 = 5"
        r"(?<=[0-9])\s[:/]\s(?=[0-9.,]+\s?=)": f" {word['divided']} ",
        r"(?<=[0-9])[:](?=[0-9.,]+\s?=)": f" {word['divided']} ",
        r"(?<=[0-9])[-−–](?=[0-9.,]+\s?=)": f" {word['minus']} ",
        r"(?<=[0-9])\s?[xX×]\s?(?=[0-9.,]+\s?=)": f" {word['times']} ",
        r"(?<=[0-9])(\s?[cmk]?m)\s?[x×]\s?(?=[0-9])": rf"\g<1> {word['by']} ",
        r"(?<=[0-9])[xX×](?=\s[^\W\d_]{2}|[,.;)]|\Z)": f" {word['so_often']}",
        r"(?<=[a-z] )[x×](?= [0-9])": word["by"],
        r"(?<=[0-9])(?:\s?[xX]\s?|×)(?=[0-9])"
        r"|(?<=[0-9])\s×\s(?=[0-9.,]+(?:\s[xX×]\s[0-9.,]+)?"
        r"\s?(?:[cmk]?m\b|px\b|p[ií]x|pulgadas|polegadas|pouces|pollici))": f" {word['by']} ",
    }


def rules(language: Language) -> Rules:
    """The names of signs in running text."""
    word = language.word
    return {
        r"&amp;": "&",
        r"\bC\+\+": f"C {word['plus']} {word['plus']}",
        rf"\b({word['and_or'].replace(' ', '/')})\b": word["and_or"],
        r"\s*&\s*": f" {word['and']} ",
        r"\s@\s": f" {word['at']} ",
        r"\s\+\s|(?<=\w)\+(?=\w)": f" {word['plus']} ",
        r"\A\+\s(?=\w)": f"{word['plus']} ",
        r"(?<=\w)\+(?![\w+])": f" {word['plus']}",
        r"(?<=[\w)])\s*(?<![=<>!])=(?![=>])\s*(?=[\w(-])": f" {word['equals']} ",
        r"(?<=[\w)])\s<\s(?=\w)": f" {word['less']} ",
        r"(?<=[\w)])\s>\s(?=\w)": f" {word['greater']} ",
        r"\s*≤\s*": f" {word['at_most']} ",
        r"\s*≥\s*": f" {word['at_least']} ",
        r"\s*≠\s*": f" {word['unequal']} ",
        r"\s*≈\s*": f" {word['almost']} ",
        r"\s*±\s*": f" {word['plus_minus']} ",
        r"(?<=\w)\s?[×*·]\s?(?=\w)": f" {word['times']} ",
        r"(?<=\w)\s?÷\s?(?=\w)": f" {word['divided']} ",
        r"(?<=\w)\s−\s?(?=\w)|(?<!\S)−(?=\w)": f" {word['minus']} ",
        r"√\s?(?=[\w(])": f"{word['root']} ",
        r"(?<=\w)π": " pi",
        r"π": "pi",
        r"∞": word["infinity"],
        r"(?<=\w)\s*→\s*(?=\w)": f" {word['to']} ",
        r"(?<=\w)\s?%": f" {word['percent']}",
        r"%(?=\w)": f"{word['percent']} ",
        r"§§?\s?(?=\w)": f"{word['section']} ",
        r"(?<=[Cc]opyright)\s?©": "",
        r"©\s?(?=\w)": "copyright ",
        # A name with a stop in it: "main.cf".
        r"(?<=\w\w)\.(?=[a-z]{2})": f" {word['dot']} ",
        r"(?<=\w)/(?=\w)": f" {word['slash']} ",
        r"(?<!\S)/(?=\w)": f"{word['slash']} ",
        r"(?<=\w)\s/\s(?=\w)": f" {word['slash']} ",
    }
