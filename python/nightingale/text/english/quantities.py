"""Quantities: amounts of money, measures with their units, percentages and multiples."""

import re

from ..spoken.engine import Rules
from ..spoken.tables import either, kept_stop, word_table
from .numbers import (
    DASH,
    END,
    FRACTION,
    NUMERAL,
    SIGN,
    START,
    cardinal,
    fraction_in_words,
    in_words,
    range_in_words,
)


def _names(entries: str) -> dict[str, tuple[str, str]]:
    """Singular and plural by symbol. A plural that is not made with an s follows a slash."""
    names = {}
    for symbol, name in word_table(entries).items():
        one, _, many = name.partition("/")
        counted, per, other = one.partition(" per ")
        names[symbol] = (one, many or f"{counted}s{per}{other}")
    return names


_CURRENCIES = _names(
    "$: dollar, £: pound, €: euro, ¥: yen/yen, ₹: rupee, ₩: won/won, ₽: ruble, ₺: lira/lira, "
    "₪: shekel, ₴: hryvnia, ฿: baht/baht, ₿: bitcoin, R$: real/reais, MX$: Mexican peso"
)
_HUNDREDTHS = _names("$ €: cent, £: penny/pence, ₹: paisa/paise, ₽: kopek, R$ MX$: centavo")
_CODES = _names(
    "USD: U S dollar, EUR: euro, GBP: British pound, JPY: yen/yen, CHF: Swiss franc, "
    "CAD: Canadian dollar, AUD: Australian dollar, INR: Indian rupee, CNY: yuan/yuan, "
    "BRL: real/reais, MXN: Mexican peso, Rs: rupee, "
    "SEK: Swedish krona/Swedish kronor, NOK: Norwegian krone/Norwegian kroner, "
    "DKK: Danish krone/Danish kroner"
)
_NATIONS = word_table(
    "US: U S, A AU: Australian, C CA: Canadian, NZ: New Zealand, HK: Hong Kong, S: Singapore, "
    "NT: New Taiwan, J: Jamaican, TT: Trinidad and Tobago"
)
_SCALES = word_table("k: thousand, m mn: million, b bn: billion, t tn: trillion")
_NOTE = re.compile(r"[\s-](?:bill|note|coin)s?\b")
_SYMBOLS = f"(?:{either(_CURRENCIES)})"
_SCALE = (
    r"(?:(?P<short>[kKmMbBtT]|mn|bn|tn)(?!\w)"
    r"|(?P<joint>[\s-])(?P<long>thousand|million|billion|trillion)\b)?"
)
_CODE = "(?P<code>" + "|".join(_CODES) + r")\b"


def _scale(match: re.Match[str]) -> str:
    if match["short"]:
        return f" {_SCALES[match['short'].lower()]}"
    return f"{match['joint']}{match['long']}" if match["long"] else ""


def _amount(match: re.Match[str]) -> str:
    groups = match.groupdict()
    one, many = _CURRENCIES[match["symbol"]]
    if groups.get("nation"):
        nation = _NATIONS[match["nation"]]
        one, many = f"{nation} {one}", f"{nation} {many}"
    sign = "minus " if groups.get("sign") else ""
    scale = _scale(match)
    numeral, last = match["first"], groups.get("last")
    if _NOTE.match(match.string, match.end()):
        return f"{sign}{in_words(numeral)}{scale} {one}"
    if last or scale:
        return f"{sign}{range_in_words(numeral, last)}{scale} {many}"
    units, _, decimals = numeral.replace(",", "").partition(".")
    if len(decimals) != 2 or match["symbol"] not in _HUNDREDTHS:
        return f"{sign}{in_words(numeral)} {one if numeral == '1' else many}"
    parts = []
    if units.strip("0") or decimals == "00":
        parts.append(f"{in_words(units)} {one if units == '1' else many}")
    if decimals != "00":
        hundredth, hundredths = _HUNDREDTHS[match["symbol"]]
        parts.append(f"{cardinal(int(decimals))} {hundredth if decimals == '01' else hundredths}")
    return sign + " and ".join(parts)


def _code(match: re.Match[str]) -> str:
    one, many = _CODES[match["code"]]
    scale = _scale(match)
    name = one if match["first"] == "1" and not scale else many
    return f"{in_words(match['first'])}{scale} {name}"


def _cents(match: re.Match[str]) -> str:
    return f"{in_words(match[1])} {'cent' if match[1] == '1' else 'cents'}"


MONEY_RULES: Rules = {
    rf"(?<=[0-9kKmMbBn]){DASH}(?={_SYMBOLS}[0-9])": " to ",
    r"(?P<sign>(?<![\w)])[-−])?"
    rf"(?:\b(?P<nation>{'|'.join(_NATIONS)}))?(?<![RX])(?P<symbol>{_SYMBOLS})\s?(?P<first>{NUMERAL})"
    rf"(?:{DASH}{_SYMBOLS}?(?P<last>{NUMERAL}))?{_SCALE}{END}": _amount,
    rf"{START}(?P<first>{NUMERAL}){_SCALE}\s?(?P<symbol>{_SYMBOLS})(?!\w)": _amount,
    rf"\b{_CODE}\s?(?P<first>{NUMERAL}){_SCALE}{END}": _code,
    rf"{START}(?P<first>{NUMERAL}){_SCALE}\s?{_CODE}": _code,
    rf"{START}({NUMERAL})\s?¢": _cents,
}


_UNITS = _names(
    "km: kilometer, m: meter, cm: centimeter, mm: millimeter, µm μm: micrometer, nm: nanometer, "
    "mi: mile, ″: inch/inches, ft: foot/feet, yd yds: yard, "
    "m² m2 sqm: square meter, km² km2: square kilometer, cm² cm2: square centimeter, "
    "ft² sqft: square foot/square feet, m³ m3: cubic meter, cm³ cm3 cc: cubic centimeter, "
    "kg: kilogram, g: gram, mg: milligram, µg μg mcg: microgram, lb lbs: pound, oz: ounce, "
    "l L: liter, ml mL: milliliter, cl cL: centiliter, dl dL: deciliter, gal: gallon, "
    "tsp: teaspoon, tbsp: tablespoon, "
    "km/h kph kmh: kilometer per hour, m/s: meter per second, m/s² m/s2: meter per second squared, "
    "mph: mile per hour, mpg: mile per gallon, "
    "s sec secs: second, ms: millisecond, µs μs: microsecond, ns: nanosecond, min mins: minute, "
    "h hr hrs: hour, yr yrs: year, "
    "Hz: hertz/hertz, kHz: kilohertz/kilohertz, MHz: megahertz/megahertz, "
    "GHz: gigahertz/gigahertz, "
    "kB KB: kilobyte, MB: megabyte, GB: gigabyte, TB: terabyte, PB: petabyte, "
    "KiB: kibibyte, MiB: mebibyte, GiB: gibibyte, "
    "kbps kbit/s: kilobit per second, Mbps Mbit/s: megabit per second, "
    "Gbps Gbit/s: gigabit per second, MB/s: megabyte per second, GB/s: gigabyte per second, "
    "W: watt, kW: kilowatt, MW: megawatt, GW: gigawatt, kWh: kilowatt hour, V: volt, kV: kilovolt, "
    "mV: millivolt, mA: milliamp, mAh: milliamp hour, Ω Ω: ohm, kΩ: kiloohm, MΩ: megohm, "
    "Pa: pascal, kPa: kilopascal, hPa: hectopascal, psi: P S I/P S I, dB: decibel, "
    "cal: calorie, kcal: kilocalorie, kJ: kilojoule, hp: horsepower/horsepower, "
    "px: pixel, MP: megapixel, dpi: dot per inch, fps: frame per second, "
    "rpm RPM: revolution per minute, bpm BPM: beat per minute, ppm: part per million, "
    "%: percent/percent, ‰: per mille/per mille, °: degree, "
    "°C ℃: degree Celsius/degrees Celsius, °F ℉: degree Fahrenheit/degrees Fahrenheit"
)
_WITH_STOP = "ft|lbs?|oz|mins?|hrs?|secs?|yds?|mi|gal|yrs?|tb?sp"  # also written with a full stop
_UNIT = "|".join(re.escape(symbol) for symbol in sorted(_UNITS, key=len, reverse=True))


def _measure(match: re.Match[str]) -> str:
    one, many = _UNITS[match["unit"]]
    if match["area"]:
        one, many = f"square {one}", f"square {many}"
    words = range_in_words(match["first"], match["last"])
    if match["joint"] == "-":
        return f"{words}-{one}"
    name = one if words in ("one", "minus one") else many
    return f"{words} {name}{kept_stop(match)}"


def _per(match: re.Match[str]) -> str:
    """ "5 km/s", "20 mg/dL"."""
    one, many = _UNITS[match["unit"]]
    words = range_in_words(match["first"], match["last"])
    return f"{words} {one if words == 'one' else many} per {_UNITS[match['per']][0]}"


def _hours_and_minutes(match: re.Match[str]) -> str:
    hours, minutes = int(match[1]), int(match[2])
    if minutes > 59:
        return match[0]
    return (
        f"{cardinal(hours)} {'hour' if hours == 1 else 'hours'} "
        f"{cardinal(minutes)} {'minute' if minutes == 1 else 'minutes'}"
    )


def _lone_unit(match: re.Match[str]) -> str:
    return _UNITS[match["unit"]][0 if match["one"] is not None else 1]


_LONE = "(?P<unit>km²|km|kg|cm|mm|mL|ml|mg)"
# Units and signs of money that no digit stands before: "millions of km", "the price per kg".
LONE_RULES: Rules = {
    rf"(?<=[a-z]\s)(?P<one>(?<=\bper\s)|(?<=\beach\s)|(?<=\bevery\s))?{_LONE}"
    r"(?![\w²³/'’-]|\s?[0-9])": _lone_unit,
    r"(?<=\b[Ii]n )([€£$])(?!\s?[0-9])": lambda match: _CURRENCIES[match[1]][1],
}


def _feet_and_inches(match: re.Match[str]) -> str:
    feet, inches = int(match[1]), int(match[2])
    return (
        f"{cardinal(feet)} {'foot' if feet == 1 else 'feet'} "
        f"{cardinal(inches)} {'inch' if inches == 1 else 'inches'}"
    )


def _scaled(match: re.Match[str]) -> str:
    if match[0] in ("2K", "4K", "8K"):  # screens
        return f"{in_words(match['number'])} K"
    return f"{in_words(match['number'])} {_SCALES[match['scale'].lower()]}"


def _fraction_of(match: re.Match[str]) -> str:
    one, many = _UNITS[match["unit"]]
    return f"{fraction_in_words(match)} {many if match['whole'] or match['before'] else one}"


_UNIT_END = r"(?![\w²³]|/[sh]\b)"
_MEASURED = (
    rf"{START}(?P<first>{SIGN}{NUMERAL})(?:\s?%?{DASH}(?P<last>{NUMERAL}))?"
    r"(?P<joint>\s?|-)(?P<area>sq\.?\s)?"
)

UNIT_RULES: Rules = {
    r"(?<![\w.,])([0-9]{1,2})['’′]\s?([0-9]{1,2})(?:[\"”″]|'')(?!\w)": _feet_and_inches,
    r"(?<![\w.,])([0-9]{1,2})\s?ft\.?\s([0-9]{1,2})\s?in\b(?:\.(?=\s[a-z]))?": _feet_and_inches,
    r"(?<![\w.,:])([0-9]{1,2})\s?h\s?([0-9]{1,2})(?:\s?m(?:in)?\b|(?!\w|[.,][0-9]))": (
        _hours_and_minutes
    ),
    r"\b401\(k\)": "four oh one K",
    r"(?<=[0-9])\s×\s(?=[0-9.,]+(?!\s?(?:[cmk]?m|in|ft|px|inch|inches|feet|pixels)\b)(?![\w.,]))": (
        " times "
    ),
    r"(?<=[0-9])(?<!\b0)\s?[x×]\s?(?=[0-9])": " by ",
    rf"{FRACTION}\s?(?P<unit>{_WITH_STOP})\.(?!\w)": lambda match: (
        _fraction_of(match) + kept_stop(match)
    ),
    rf"{FRACTION}\s?(?P<unit>{_UNIT}){_UNIT_END}": _fraction_of,
    rf"{_MEASURED}(?P<unit>{_WITH_STOP})\.(?!\w)": _measure,
    r"(?<=[0-9])\s?in\.(?=\s(?:wide|tall|long|deep|thick|high|across|of|by|x)\b|[,;)])": "″",
    rf"{_MEASURED}(?P<unit>{_UNIT})/(?P<per>{_UNIT})(?![\w²³/])": _per,
    r"(?<=[0-9]\s)(?P<counted>[a-z]{3,})/(?P<per>km²|m²|kg)(?!\w)": lambda match: (
        f"{match['counted']} per {_UNITS[match['per']][0]}"
    ),
    rf"{_MEASURED}(?P<unit>{_UNIT}){_UNIT_END}": _measure,
    # "1.2B" is a number, "12B" may be a gate or a flat.
    rf"{START}(?P<number>{NUMERAL})(?P<scale>[kKM]|(?<=\.[0-9])B)(?!\w)": _scaled,
    rf"{START}({NUMERAL})[x×](?!\w)": lambda match: f"{in_words(match[1])} times",
}
