"""Units of measure, percentages and multiples after numbers."""

# ruff: noqa: RUF001

from __future__ import annotations

import re

from .numbers import DASH, NUMERAL, SIGN, START, cardinal, in_words, range_in_words
from .numerals import FRACTION, fraction_in_words
from .rules import Rule, kept_stop, rule

# Symbols by what they stand for. Where the plural is not the singular and an s, it follows a slash.
_UNITS = {
    "kilometer": "km",
    "meter": "m",
    "centimeter": "cm",
    "millimeter": "mm",
    "micrometer": "µm μm",
    "nanometer": "nm",
    "mile": "mi",
    "foot/feet": "ft",
    "yard": "yd yds",
    "kilogram": "kg",
    "gram": "g",
    "milligram": "mg",
    "microgram": "µg μg mcg",
    "pound": "lb lbs",
    "ounce": "oz",
    "liter": "l L",
    "milliliter": "ml mL",
    "centiliter": "cl cL",
    "deciliter": "dl dL",
    "gallon": "gal",
    "teaspoon": "tsp",
    "tablespoon": "tbsp",
    "kilometer per hour/kilometers per hour": "km/h kph kmh",
    "meter per second/meters per second": "m/s",
    "meter per second squared/meters per second squared": "m/s²",
    "mile per hour/miles per hour": "mph",
    "mile per gallon/miles per gallon": "mpg",
    "square meter": "m² m2 sqm",
    "square kilometer": "km² km2",
    "square centimeter": "cm² cm2",
    "square foot/square feet": "ft² sqft",
    "cubic meter": "m³ m3",
    "cubic centimeter": "cm³ cm3 cc",
    "second": "s sec secs",
    "millisecond": "ms",
    "microsecond": "µs μs",
    "nanosecond": "ns",
    "minute": "min mins",
    "hour": "h hr hrs",
    "year": "yr yrs",
    "hertz/hertz": "Hz",
    "kilohertz/kilohertz": "kHz",
    "megahertz/megahertz": "MHz",
    "gigahertz/gigahertz": "GHz",
    "kilobyte": "kB KB",
    "megabyte": "MB",
    "gigabyte": "GB",
    "terabyte": "TB",
    "petabyte": "PB",
    "kibibyte": "KiB",
    "mebibyte": "MiB",
    "gibibyte": "GiB",
    "kilobit per second/kilobits per second": "kbps kbit/s",
    "megabit per second/megabits per second": "Mbps Mbit/s",
    "gigabit per second/gigabits per second": "Gbps Gbit/s",
    "megabyte per second/megabytes per second": "MB/s",
    "gigabyte per second/gigabytes per second": "GB/s",
    "watt": "W",
    "kilowatt": "kW",
    "megawatt": "MW",
    "gigawatt": "GW",
    "kilowatt hour": "kWh",
    "volt": "V",
    "kilovolt": "kV",
    "millivolt": "mV",
    "milliamp": "mA",
    "milliamp hour": "mAh",
    "ohm": "Ω Ω",
    "pascal": "Pa",
    "kilopascal": "kPa",
    "hectopascal": "hPa",
    "P S I/P S I": "psi",
    "decibel": "dB",
    "calorie": "cal",
    "kilocalorie": "kcal",
    "kilojoule": "kJ",
    "horsepower/horsepower": "hp",
    "pixel": "px",
    "megapixel": "MP",
    "dot per inch/dots per inch": "dpi",
    "frame per second/frames per second": "fps",
    "revolution per minute/revolutions per minute": "rpm RPM",
    "beat per minute/beats per minute": "bpm BPM",
    "part per million/parts per million": "ppm",
    "percent/percent": "%",
    "per mille/per mille": "‰",
    "degree Celsius/degrees Celsius": "°C ℃",
    "degree Fahrenheit/degrees Fahrenheit": "°F ℉",
    "degree": "°",
}
_WITH_STOP = "ft|lbs?|oz|mins?|hrs?|secs?|yds?|mi|gal|yrs?|tb?sp"  # also written with a full stop


def _names() -> dict[str, tuple[str, str]]:
    names = {}
    for name, symbols in _UNITS.items():
        one, _, many = name.partition("/")
        for symbol in symbols.split():
            names[symbol] = (one, many or f"{one}s")
    return names


_NAMES = _names()
_SYMBOL = "|".join(re.escape(symbol) for symbol in sorted(_NAMES, key=len, reverse=True))
_SCALES = {"k": "thousand", "K": "thousand", "M": "million", "B": "billion"}


def _measure(match: re.Match[str]) -> str:
    one, many = _NAMES[match["unit"]]
    if match["area"]:
        one, many = f"square {one}", f"square {many}"
    words = range_in_words(match["first"], match["last"])
    if match["joint"] == "-":
        return f"{words}-{one}"
    name = one if words in ("one", "minus one") else many
    return f"{words} {name}{kept_stop(match)}"


def _feet_and_inches(match: re.Match[str]) -> str:
    feet, inches = int(match[1]), int(match[2])
    return (
        f"{cardinal(feet)} {'foot' if feet == 1 else 'feet'} "
        f"{cardinal(inches)} {'inch' if inches == 1 else 'inches'}"
    )


def _scaled(match: re.Match[str]) -> str:
    if match[0] in ("2K", "4K", "8K"):  # screens
        return f"{in_words(match['number'])} K"
    return f"{in_words(match['number'])} {_SCALES[match['scale']]}"


def _fraction_of(match: re.Match[str]) -> str:
    one, many = _NAMES[match["unit"]]
    return f"{fraction_in_words(match)} {many if match['whole'] or match['before'] else one}"


_UNIT_END = r"(?![\w²³]|/[sh]\b)"
_MEASURED = (
    rf"{START}(?P<first>{SIGN}{NUMERAL})(?:\s?%?{DASH}(?P<last>{NUMERAL}))?"
    r"(?P<joint>\s?|-)(?P<area>sq\.?\s)?"
)

RULES: tuple[Rule, ...] = (
    rule(r"(?<![\w.,])([0-9]{1,2})['’′]\s?([0-9]{1,2})(?:[\"”″]|'')(?!\w)", _feet_and_inches),
    rule(r"\b401\(k\)", "four oh one K"),
    rule(r"(?<=[0-9])(?<!\b0)\s?[x×]\s?(?=[0-9])", " by "),
    rule(
        rf"{FRACTION}\s?(?P<unit>{_WITH_STOP})\.(?!\w)",
        lambda match: _fraction_of(match) + kept_stop(match),
    ),
    rule(rf"{FRACTION}\s?(?P<unit>{_SYMBOL}){_UNIT_END}", _fraction_of),
    rule(rf"{_MEASURED}(?P<unit>{_WITH_STOP})\.(?!\w)", _measure),
    rule(rf"{_MEASURED}(?P<unit>{_SYMBOL}){_UNIT_END}", _measure),
    # "1.2B" is a number, "12B" may be a gate or a flat.
    rule(rf"{START}(?P<number>{NUMERAL})(?P<scale>[kKM]|(?<=\.[0-9])B)(?!\w)", _scaled),
    rule(rf"{START}({NUMERAL})[x×](?!\w)", lambda match: f"{in_words(match[1])} times"),
)
