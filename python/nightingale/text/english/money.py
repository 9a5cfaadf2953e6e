"""Amounts of money."""

# ruff: noqa: RUF001

from __future__ import annotations

import re

from .numbers import DASH, END, NUMERAL, START, cardinal, in_words, range_in_words
from .rules import Rule, rule

# Singular and plural of the unit and of its hundredth.
_CURRENCIES = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "€": ("euro", "euros", "cent", "cents"),
    "¥": ("yen", "yen", "", ""),
    "₹": ("rupee", "rupees", "paisa", "paise"),
    "₩": ("won", "won", "", ""),
    "₽": ("ruble", "rubles", "kopek", "kopeks"),
    "₺": ("lira", "lira", "", ""),
    "₪": ("shekel", "shekels", "", ""),
    "₴": ("hryvnia", "hryvnias", "", ""),
    "฿": ("baht", "baht", "", ""),
    "₿": ("bitcoin", "bitcoins", "", ""),
}
_CODES = {
    "USD": ("U S dollar", "U S dollars"),
    "EUR": ("euro", "euros"),
    "GBP": ("British pound", "British pounds"),
    "JPY": ("yen", "yen"),
    "CHF": ("Swiss franc", "Swiss francs"),
    "CAD": ("Canadian dollar", "Canadian dollars"),
    "AUD": ("Australian dollar", "Australian dollars"),
    "INR": ("Indian rupee", "Indian rupees"),
    "CNY": ("yuan", "yuan"),
    "SEK": ("Swedish krona", "Swedish kronor"),
    "NOK": ("Norwegian krone", "Norwegian kroner"),
    "DKK": ("Danish krone", "Danish kroner"),
}
_NATIONS = {
    "US": "U S ",
    "A": "Australian ",
    "AU": "Australian ",
    "C": "Canadian ",
    "CA": "Canadian ",
    "NZ": "New Zealand ",
    "HK": "Hong Kong ",
    "S": "Singapore ",
}
_SCALES = {
    "k": "thousand",
    "m": "million",
    "mn": "million",
    "mm": "million",
    "b": "billion",
    "bn": "billion",
    "t": "trillion",
    "tn": "trillion",
}
_NOTE = re.compile(r"[\s-](?:bill|note|coin)s?\b")
_SYMBOLS = "[" + "".join(_CURRENCIES) + "]"
_SCALE = (
    r"(?:(?P<short>[kKmMbBtT]|mn|bn|tn)(?!\w)"
    r"|(?P<joint>[\s-])(?P<long>thousand|million|billion|trillion)\b)?"
)


def _scale(match: re.Match[str]) -> str:
    if match["short"]:
        return f" {_SCALES[match['short'].lower()]}"
    return f"{match['joint']}{match['long']}" if match["long"] else ""


def _amount(match: re.Match[str]) -> str:
    groups = match.groupdict()
    one, many, hundredth, hundredths = _CURRENCIES[match["symbol"]]
    nation = _NATIONS.get(groups.get("nation") or "", "")
    sign = "minus " if groups.get("sign") else ""
    scale = _scale(match)
    numeral, last = match["first"], groups.get("last")
    if _NOTE.match(match.string, match.end()):
        return f"{sign}{in_words(numeral)}{scale} {nation}{one}"
    if last or scale:
        return f"{sign}{range_in_words(numeral, last)}{scale} {nation}{many}"
    units, _, decimals = numeral.replace(",", "").partition(".")
    if len(decimals) != 2 or not hundredth:
        return f"{sign}{in_words(numeral)} {nation}{one if numeral == '1' else many}"
    parts = []
    if units.strip("0") or decimals == "00":
        parts.append(f"{in_words(units)} {nation}{one if units == '1' else many}")
    if decimals != "00":
        name = hundredth if decimals == "01" else hundredths
        parts.append(f"{cardinal(int(decimals))} {name}")
    return sign + " and ".join(parts)


def _code(match: re.Match[str]) -> str:
    one, many = _CODES[match["code"]]
    scale = _scale(match)
    name = one if match["first"] == "1" and not scale else many
    return f"{in_words(match['first'])}{scale} {name}"


def _cents(match: re.Match[str]) -> str:
    return f"{in_words(match[1])} {'cent' if match[1] == '1' else 'cents'}"


_CODE = "(?P<code>" + "|".join(_CODES) + r")\b"

RULES: tuple[Rule, ...] = (
    rule(rf"(?<=[0-9kKmMbBn]){DASH}(?={_SYMBOLS}[0-9])", " to "),
    rule(
        r"(?P<sign>(?<![\w)])[-−])?"
        rf"(?:\b(?P<nation>{'|'.join(_NATIONS)}))?(?P<symbol>{_SYMBOLS})\s?(?P<first>{NUMERAL})"
        rf"(?:{DASH}{_SYMBOLS}?(?P<last>{NUMERAL}))?{_SCALE}{END}",
        _amount,
    ),
    rule(
        rf"{START}(?P<first>{NUMERAL}){_SCALE}\s?(?P<symbol>{_SYMBOLS})(?!\w)",
        _amount,
    ),
    rule(rf"\b{_CODE}\s?(?P<first>{NUMERAL}){_SCALE}{END}", _code),
    rule(rf"{START}(?P<first>{NUMERAL}){_SCALE}\s?{_CODE}", _code),
    rule(rf"{START}({NUMERAL})\s?¢", _cents),
)
