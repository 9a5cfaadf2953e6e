"""Finds the files of a checkpoint folder."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ._core import Error
from .model_settings import ModelSettings
from .option import shown

LANGUAGES = {
    "ar": "Arabic",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fi": "Finnish",
    "fr": "French",
    "he": "Hebrew",
    "hi": "Hindi",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "ms": "Malay",
    "nl": "Dutch",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "sv": "Swedish",
    "sw": "Swahili",
    "tr": "Turkish",
    "zh": "Chinese",
}


@dataclass(frozen=True)
class Family:
    """One kind of official checkpoint: its file names, newest and preferred first."""

    name: str
    t3: tuple[str, ...]
    tokenizer: str
    multilingual: bool


MULTILINGUAL_TOKENIZER = "grapheme_mtl_merged_expanded_v1.json"
CANGJIE_TABLE = "Cangjie5_TC.json"  # codes of Chinese glyphs, beside the multilingual tokenizer
DICTA_MODELS = ("dicta-1.0.onnx", "dicta-1.0.int8.onnx")  # of Hebrew's diacritics, not official

# v2 is the reference's checkpoint and wins where a folder has both; .safetensors wins over .pt.
FAMILIES = tuple(
    Family(name, (f"{t3}.safetensors", f"{t3}.pt"), tokenizer, tokenizer == MULTILINGUAL_TOKENIZER)
    for name, t3, tokenizer in (
        ("multilingual v2", "t3_mtl23ls_v2", MULTILINGUAL_TOKENIZER),
        ("multilingual v3", "t3_mtl23ls_v3", MULTILINGUAL_TOKENIZER),
        ("english", "t3_cfg", "tokenizer.json"),
    )
)

T3_FILES = tuple(name for family in FAMILIES for name in family.t3)
S3GEN_FILES = ("s3gen.safetensors", "s3gen.pt", "s3gen_meanflow.safetensors")
VOICE_ENCODER_FILES = ("ve.safetensors", "ve.pt")
VOICE_FILES = ("conds.safetensors", "conds.pt")
VOICES_FOLDER = "voices"
EMBEDDED = Path(__file__).with_name("assets")


@dataclass(frozen=True)
class Checkpoint:
    """The files of one model folder."""

    folder: Path
    family: Family
    t3: Path
    tokenizer: Path
    cangjie: Path | None
    dicta: Path | None
    s3gen: Path | None
    voice_encoder: Path | None
    voice: Path | None
    voices: dict[str, Path]  # besides, by name

    @cached_property
    def settings(self) -> ModelSettings:
        """The model's own, read when first asked for."""
        family = dict(LANGUAGES) if self.family.multilingual else {"en": LANGUAGES["en"]}
        return ModelSettings.of(self.folder, family)

    @property
    def languages(self) -> dict[str, str]:
        """Codes and names: those that the settings list, else those of the family."""
        return self.settings.languages

    @property
    def voice_names(self) -> list[str]:
        """The default voice, where there is one, and the named ones."""
        return [*(["default"] if self.voice is not None else []), *self.voices]


def embedded_model() -> Path | None:
    """The folder of the model in the package; None where it was built without one."""
    return EMBEDDED if any((EMBEDDED / name).is_file() for name in T3_FILES) else None


def find_checkpoint(folder: str | Path) -> Checkpoint:
    """Looks for a known family of files in `folder`; an Error names what is missing."""
    folder = Path(folder)
    if not os.path.isdir(folder):  # Path.is_dir raises for a name that is too long
        raise Error(f"{folder} is not a folder; expected one with a T3 checkpoint in it")
    for family in FAMILIES:
        t3 = _first(folder, family.t3)
        if t3 is None:
            continue
        tokenizer = folder / family.tokenizer
        if not tokenizer.is_file():
            raise Error(f"{folder} has {t3.name} but not its tokenizer, {family.tokenizer}")
        return Checkpoint(
            folder,
            family,
            t3,
            tokenizer,
            cangjie=_first(folder, (CANGJIE_TABLE,)) if family.multilingual else None,
            dicta=_first(folder, DICTA_MODELS) if family.multilingual else None,
            s3gen=_first(folder, S3GEN_FILES),
            voice_encoder=_first(folder, VOICE_ENCODER_FILES),
            voice=_first(folder, VOICE_FILES),
            voices=_named_voices(folder / VOICES_FOLDER),
        )
    expected = ", ".join(family.t3[0] for family in FAMILIES)
    raise Error(f"{folder} has no T3 checkpoint; expected one of {expected}")


def known_language(language: Any, languages: Mapping[str, str]) -> str:
    """The code of one of a model's languages, or a ValueError that names them."""
    code = language.lower() if isinstance(language, str) else ""
    if code in languages:
        return code
    message = f"unknown language {shown(language)}; this model speaks {', '.join(languages)}"
    if code in LANGUAGES:
        message += (
            f"; for {LANGUAGES[code]} load a multilingual checkpoint, such as "
            f"ResembleAI/chatterbox, which speaks {len(LANGUAGES)} languages"
        )
    raise ValueError(message)


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _named_voices(folder: Path) -> dict[str, Path]:
    return {file.stem: file for file in sorted(folder.glob("*.safetensors"))}
