"""Finds the files of a checkpoint folder."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from . import mlx_files
from ._core import Error
from .family import GPT2, Architecture, Member, choose, member_of, t3_files
from .language_tags import language_code
from .model_settings import ModelSettings
from .option import shown
from .torch_file import open_tensors

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


CANGJIE_TABLE = "Cangjie5_TC.json"  # codes of Chinese glyphs, beside the multilingual tokenizer
DICTA_MODELS = ("dicta-1.0.onnx", "dicta-1.0.int8.onnx")  # of Hebrew's diacritics, not official
VOICE_ENCODER_FILES = ("ve.safetensors", "ve.pt")
VOICE_FILES = ("conds.safetensors", "conds.pt")
VOICES_FOLDER = "voices"
TOKENIZER_COPY = "tokenizer.json"  # as conversions by mlx-audio name any member's
EMBEDDED = Path(__file__).with_name("assets")


@dataclass(frozen=True)
class Checkpoint:
    """The files of one model folder."""

    folder: Path
    family: Member
    t3: Path
    tokenizer_files: tuple[Path, ...]
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
        return ModelSettings.of(self.folder, family, self.family.text_preprocessing)

    @property
    def settings_of(self) -> Path:
        """The official path of T3's file, whose name tells its settings."""
        return self.folder / self.family.t3[0] if mlx_files.is_conversion(self.t3) else self.t3

    @property
    def tokenizer(self) -> Path:
        """The tokenizer's file, the first where there are several."""
        return self.tokenizer_files[0]

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
    return EMBEDDED if holds_model(EMBEDDED) else None


def holds_model(folder: Path) -> bool:
    """Whether a folder has the T3 of any member of the family."""
    return bool(_t3_files_in(folder)) or holds_conversion(folder)


def holds_conversion(folder: Path) -> bool:
    """Whether a folder has the files of a conversion by mlx-audio."""
    names = (mlx_files.MODEL_FILE, mlx_files.CONFIG_FILE)
    return all(os.path.isfile(folder / name) for name in names)


def find_t3(folder: str | Path, variant: str | None = None) -> Path:
    """The T3 file of a folder: of several the variant's, or the first in the table's order."""
    folder = Path(folder)
    if not os.path.isdir(folder):  # Path.is_dir raises for a name that is too long
        raise Error(f"{folder} is not a folder; expected one with a T3 checkpoint in it")
    return folder / choose(_t3_files_in(folder), variant, folder)


def find_checkpoint(folder: str | Path, variant: str | None = None) -> Checkpoint:
    """The files of a member of the family in `folder`; an Error names what is missing. variant:
    which member, where there are several"""
    folder = Path(folder)
    if holds_conversion(folder) and not _t3_files_in(folder):
        return _find_conversion(folder, variant)
    t3 = find_t3(folder, variant)
    family = member_of(t3, Architecture.of(open_tensors(t3), t3))
    for name in family.tokenizer_files:
        if not (folder / name).is_file():
            raise Error(f"{folder} has {t3.name} ({family.name}) but not its tokenizer, {name}")
    return Checkpoint(
        folder,
        family,
        t3,
        tuple(folder / name for name in family.tokenizer_files),
        cangjie=_first(folder, (CANGJIE_TABLE,)) if family.multilingual else None,
        dicta=_first(folder, DICTA_MODELS) if family.multilingual else None,
        s3gen=_first(folder, family.s3gen),
        voice_encoder=_first(folder, VOICE_ENCODER_FILES),
        voice=_first(folder, VOICE_FILES),
        voices=_named_voices(folder / VOICES_FOLDER),
    )


def known_language(language: Any, languages: Mapping[str, str]) -> str:
    """The code of one of a model's languages, also for a tag such as es-ES, or a ValueError that
    names them."""
    code = language_code(language) if isinstance(language, str) else ""
    if code in languages:
        return code
    message = f"unknown language {shown(language)}; this model speaks {', '.join(languages)}"
    if code in LANGUAGES:
        message += (
            f"; for {LANGUAGES[code]} load a multilingual checkpoint, such as "
            f"ResembleAI/chatterbox, which speaks {len(LANGUAGES)} languages"
        )
    raise ValueError(message)


def _find_conversion(folder: Path, variant: str | None) -> Checkpoint:
    config_file, model = folder / mlx_files.CONFIG_FILE, folder / mlx_files.MODEL_FILE
    config = mlx_files.read_config(folder)
    said = mlx_files.converted_member(config, config_file)
    shape = Architecture.of(mlx_files.open_part(model, mlx_files.T3), model)
    family = member_of(folder / said.t3[0], shape)
    if family.name != said.name:
        raise Error(
            f"{config_file} says that {model.name} is {said.name}, but it has "
            f"{shape.text_vocabulary} text tokens, not {said.text_vocabulary}"
        )
    choose({family.variant: family.t3[0]}, variant, folder)  # an Error where it is another
    preprocessing = mlx_files.converted_preprocessing(config, config_file)
    tokenizer = _converted_tokenizer(folder, family)
    if tokenizer is None:
        raise Error(f"{folder} has {model.name} ({family.name}) but not its {TOKENIZER_COPY}")
    return Checkpoint(
        folder,
        replace(family, text_preprocessing=preprocessing or family.text_preprocessing),
        model,
        tokenizer,
        cangjie=_first(folder, (CANGJIE_TABLE,)) if family.multilingual else None,
        dicta=_first(folder, DICTA_MODELS) if family.multilingual else None,
        s3gen=model,
        voice_encoder=None,  # the tokenizer of recordings, which baking needs too, is elsewhere
        voice=_first(folder, VOICE_FILES),
        voices=_named_voices(folder / VOICES_FOLDER),
    )


def _converted_tokenizer(folder: Path, family: Member) -> tuple[Path, ...] | None:
    """The one file of a conversion; of Turbo's also the three official ones."""
    if family.backbone == GPT2:
        files = tuple(folder / name for name in family.tokenizer_files)
        if all(file.is_file() for file in files):
            return files
    names = (TOKENIZER_COPY,) if family.backbone == GPT2 else (TOKENIZER_COPY, family.tokenizer)
    found = _first(folder, names)
    return None if found is None else (found,)


def _t3_files_in(folder: Path) -> dict[str, str]:
    if not os.path.isdir(folder):
        return {}
    return t3_files(entry.name for entry in os.scandir(folder) if entry.is_file())


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _named_voices(folder: Path) -> dict[str, Path]:
    return {file.stem: file for file in sorted(folder.glob("*.safetensors"))}
