"""Symbols that are spoken."""

import re

from ..spoken.engine import Rules
from ..spoken.tables import word_table
from .abbreviations import spelled

_PER = word_table(
    "hour hr: hour, day: day, week: week, month mo: month, year yr: year, minute min: minute, "
    "second sec: second, person: person, share: share, unit: unit, mile: mile, gallon: gallon, "
    "barrel: barrel, kg: kilogram, lb: pound"
)

_GREEK = word_table(
    "α: alpha, β: beta, γ: gamma, δ Δ: delta, ε: epsilon, ζ: zeta, η: eta, θ Θ: theta, κ: kappa, "
    "λ Λ: lambda, μ: mu, ν: nu, ξ: xi, π Π: pi, ρ: rho, σ Σ: sigma, τ: tau, φ Φ: phi, χ: chi, "
    "ψ Ψ: psi, ω Ω: omega"
)
_GREEK_LETTERS = "\u0370-\u03ff\u1f00-\u1fff"


def _apart(match: re.Match[str], name: str) -> str:
    """A name with spaces where letters or digits touch the sign: "two pi r"."""
    before = match.string[match.start() - 1 : match.start()].isalnum()
    after = match.string[match.end() : match.end() + 1].isalnum()
    return f"{' ' * before}{name}{' ' * after}"


# Those that only a number tells apart from ordinary punctuation, while there are numbers.
BEFORE_NUMBERS: Rules = {
    r"\b24/7\b": "twenty-four seven",
    r"\b9/11\b(?!/)": "nine eleven",
    r"\b20/20(?=\s(?:vision|hindsight)\b)": "twenty twenty",
    r"(?<=[0-9])\s?[x×]\s?(?=10[⁰¹²³⁴-⁹⁻^])": " times ",
    r"(?<![\w<])<\s?(?=[-−$£€]?[0-9])": "less than ",
    r"(?<![\w>-])>\s?(?=[-−$£€]?[0-9])": "greater than ",
    r"(?<!\w)(?:#|№)\s?(?=[0-9])": "number ",
    r"(?<!\w)±\s?(?=[0-9])": "plus or minus ",
    r"(?<![\w~])[~≈]\s?(?=[$£€]?[0-9])": "about ",
    r"(?<![\w+])\+(?=[0-9])": "plus ",
    rf"(?<=[0-9])(\s?[A-Za-zµ°]{{0,12}})\s?/\s?({'|'.join(_PER)})\b": lambda match: (
        f"{match[1]} per {_PER[match[2]]}"
    ),
}

# Letters by themselves, in formulas; words in Greek stay.
GREEK_RULES: Rules = {
    rf"(?<![{_GREEK_LETTERS}])(?<![0-9][kM])(?<![0-9]\s[kM])(?P<letter>[{''.join(_GREEK)}])"
    rf"(?![{_GREEK_LETTERS}])": lambda match: _apart(match, _GREEK[match["letter"]]),
}

RULES: Rules = {
    r"&amp;": "&",
    r"\bC\+\+": "C plus plus",
    r"\b([CF])#": r"\1 sharp",
    r"\band/or\b": "and or",
    r"\b[Nn]/[Aa]\b": "not applicable",
    r"(?<!\w)w/o(?!\w)": "without",
    r"(?<!\w)w/\s?": "with ",
    r"\b([A-Z]{1,3})&([A-Z]{1,3})\b": lambda match: f"{spelled(match[1])} and {spelled(match[2])}",
    r"\s*&\s*": " and ",
    r"\s@\s": " at ",
    r"\s\+\s|(?<=\w)\+(?=\w)": " plus ",
    r"(?<=\w)\+(?![\w+])": " plus",
    r"(?<=[\w)])\s*(?<![=<>!])=(?![=>])\s*(?=[\w(])": " equals ",
    r"(?<=[\w)])\s<\s(?=\w)": " is less than ",
    r"(?<=[\w)])\s>\s(?=\w)": " is greater than ",
    r"\s*≤\s*": " less than or equal to ",
    r"\s*≥\s*": " greater than or equal to ",
    r"\s*≠\s*": " not equal to ",
    r"\s*≈\s*": " approximately ",
    r"\s*±\s*": " plus or minus ",
    r"(?<=\w)\s?×\s?(?=\w)": " times ",
    r"(?<=\w)\s?[÷∕]\s?(?=\w)": " divided by ",
    r"(?<=\w)\s?[−]\s?(?=\w)": " minus ",
    r"√\s?(?=[\w(])": "the square root of ",
    r"∛\s?(?=[\w(])": "the cube root of ",
    r"∑\s?(?=[\w(])": "the sum of ",
    r"\s*∈\s*": " in ",
    r"\s*∝\s*": " proportional to ",
    r"∞": "infinity",
    r"(?<=\w)\s*→\s*(?=\w)": " to ",
    r"(?<=\w)\s?%": " percent",
    r"§§?\s?(?=\w)": "section ",
    r"©\s?(?=\w)": "copyright ",
    r"(?<=\w)\s/\s(?=\w)": lambda match: (
        " divided by " if "=" in match.string or " equals " in match.string else " slash "
    ),
    r"(?<=\w)/(?=\w)": " slash ",
    r"(?<!\S)/(?=\w)": "slash ",
}
