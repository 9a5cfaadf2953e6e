"""A checkpoint's nightingale.json, except for the part about T3, which the core reads."""

import json
import math
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from ._core import Error
from .family import TEXT_PREPROCESSING
from .small_files import read_small
from .speaking_rate import SpeakingRate

SETTINGS_FILE = "nightingale.json"
MOST_BYTES = 2**20  # of it
LOOKAHEAD_TOKENS = 3  # that the flow's encoder sees past a frame's own
MOST_LOOKAHEAD = 100
MOST_RATES = 100


@dataclass(frozen=True)
class FlowSettings:
    """Options of the flow model: "s3gen" in the file."""

    temperature: float = 1.0  # what the noise is multiplied with that a mel begins as
    lookahead: int = LOOKAHEAD_TOKENS  # tokens that a stream waits for past the end of a chunk
    prompt_tokens: int | None = None  # of a voice, the last that the flow sees; None: all


@dataclass(frozen=True)
class ModelSettings:
    languages: dict[str, str]  # codes and names
    flow: FlowSettings
    text_preprocessing: str  # one of family.TEXT_PREPROCESSING
    speaking_rate: SpeakingRate | None = None  # None: sound is stretched
    voices: dict[str, str] = field(default_factory=dict)  # of languages with a default of their own

    @classmethod
    def of(cls, folder: Path, family: dict[str, str], preprocessing: str) -> "ModelSettings":
        """family, preprocessing: the languages and the reading of text where the file has none"""
        file = folder / SETTINGS_FILE
        try:
            text = read_small(file, MOST_BYTES) if file.exists() else b"{}"
            found = _object(json.loads(text.decode()), str(file))
        except (ValueError, RecursionError) as error:
            raise Error(f"{file} is not JSON in UTF-8: {error}") from error
        languages = _languages(found.get("languages", list(family)), family, file)
        return cls(
            languages,
            _flow(found.get("s3gen", {}), file),
            _preprocessing(found.get("text_preprocessing", preprocessing), file),
            _speaking_rate(found.get("speaking_rate"), file),
            _voices(found.get("voices", {}), languages, file),
        )


def _object(found: Any, name: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise Error(f"{name}: expected an object")
    return found


def _languages(listed: Any, family: dict[str, str], file: Path) -> dict[str, str]:
    codes = listed if isinstance(listed, list) else []
    if not codes or not all(isinstance(code, str) and code in family for code in codes):
        known = ", ".join(family)
        raise Error(f"{file}: languages must be a list of codes among {known}, not {listed!r}")
    return {code: name for code, name in family.items() if code in codes}


def _preprocessing(given: Any, file: Path) -> str:
    if given not in TEXT_PREPROCESSING:
        known = ", ".join(map(repr, TEXT_PREPROCESSING))
        raise Error(f"{file}: text_preprocessing must be one of {known}, not {given!r}")
    return str(given)


def _flow(given: Any, file: Path) -> FlowSettings:
    name = f"{file}: s3gen"
    known = {field.name for field in fields(FlowSettings)}
    if unknown := _object(given, name).keys() - known:
        listed = ", ".join(sorted(unknown))
        raise Error(f"{name} has no setting {listed}, only {', '.join(sorted(known))}")
    found = FlowSettings(**given)
    temperature, lookahead = found.temperature, found.lookahead
    if not _is_number(temperature, int | float) or not 0 <= temperature <= 2:
        raise Error(f"{name}.temperature must be a number from 0 to 2, not {temperature!r}")
    if not _is_number(lookahead, int) or not LOOKAHEAD_TOKENS <= lookahead <= MOST_LOOKAHEAD:
        raise Error(
            f"{name}.lookahead must be a whole number from {LOOKAHEAD_TOKENS} to "
            f"{MOST_LOOKAHEAD}, not {lookahead!r}"
        )
    prompt_tokens = found.prompt_tokens
    if prompt_tokens is not None and (not _is_number(prompt_tokens, int) or prompt_tokens < 0):
        raise Error(
            f"{name}.prompt_tokens must be a whole number, 0 or more, not {prompt_tokens!r}"
        )
    return found


def _speaking_rate(given: Any, file: Path) -> SpeakingRate | None:
    if given is None:
        return None
    pairs = given if isinstance(given, list) and len(given) <= MOST_RATES else []
    numbers = all(
        isinstance(pair, list)
        and len(pair) == 2
        and all(_is_number(x, int | float) and x >= 0 for x in pair)
        for pair in pairs
    )
    rates = [pair[0] for pair in pairs] if numbers else []
    rising = all(before < after for before, after in pairwise(rates))
    if not rates or not rising or not 0 < rates[0] <= 1 <= rates[-1]:
        raise Error(
            f"{file}: speaking_rate must be a list of at most {MOST_RATES} pairs of a rate and the "
            "value of T3's emotion input, 0 or more, the rates rising from at most 1 to at least 1"
        )
    return SpeakingRate(tuple((float(rate), float(value)) for rate, value in pairs))


def _voices(given: Any, languages: dict[str, str], file: Path) -> dict[str, str]:
    named = _object(given, f"{file}: voices")
    for code, name in named.items():
        if code not in languages or not isinstance(name, str):
            raise Error(
                f"{file}: voices must give a name for languages among {', '.join(languages)}, not "
                f"{name!r} for {code!r}"
            )
    return named


def _is_number(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool) and math.isfinite(value)
