"""A batch's lines with all of their options, and a digest of what the sound depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from . import _core
from .checkpoint import Checkpoint, known_language
from .draft import KINDS, find_draft
from .manifest import Line
from .model_settings import SETTINGS_FILE
from .option import options_of
from .options import LoadOptions, SpeechOptions
from .text.detection import is_auto
from .text.lexicon import Lexicon
from .text.markup.ssml import is_ssml
from .voice import Voice
from .voice_folder import VoiceFolder, find_voice

READ_BYTES = 1 << 20
# Packages that change how a text is read, where they are installed.
TEXT_PACKAGES = (
    "dicta-onnx", "markdown-it-py", "py3langid", "pykakasi", "russian-text-stresser",
    "spacy-pkuseg",
)  # fmt: skip


@dataclass(frozen=True)
class Request:
    """A line with all of its options."""

    line: Line
    options: dict[str, Any]
    digest: str  # of all that the sound depends on


class Requests:
    """Makes requests of lines: with the command's options and the voices they name."""

    def __init__(
        self, checkpoint: Checkpoint, loading: LoadOptions, defaults: dict[str, Any]
    ) -> None:
        self.voices: dict[str, Voice] = {}  # those that do not come with the model
        self._voice_digests: dict[str | None, Any] = {None: _content_digest(checkpoint.voice)}
        self.lexicons: dict[str, Lexicon] = {}  # by their digests
        self._lexicon_digests: dict[str, str] = {}  # by what is given for them, as JSON
        self._defaults = defaults
        self._checkpoint = checkpoint
        self._model = _model_digest(checkpoint, loading)
        self.check(defaults)

    def check(self, options: dict[str, Any]) -> None:
        """Refuses a language that the model does not speak, a voice that is not there and a bad
        lexicon."""
        if not is_auto(options.get("language")):
            known_language(options.get("language", "en"), self._checkpoint.languages)
        self._lexicon_digest(options)
        voice: Any = options.get("voice")
        if voice in self._voice_digests:
            return
        found = find_voice(voice, self._checkpoint.voice_names, VoiceFolder())
        if isinstance(found, Voice):
            self.voices[voice] = found
            self._voice_digests[voice] = found.digest
        else:
            file = self._checkpoint.voices.get(found, self._checkpoint.voice)
            self._voice_digests[voice] = _content_digest(file)

    def _lexicon_digest(self, options: Mapping[str, Any]) -> str | None:
        """Of the lexicon's content, which is read once."""
        given = options.get("lexicon")
        if given is None:
            return None
        asked = json.dumps(given)
        if asked not in self._lexicon_digests:
            lexicon = Lexicon.of(given)
            assert lexicon is not None  # something was given
            self._lexicon_digests[asked] = lexicon.digest
            self.lexicons[lexicon.digest] = lexicon
        return self._lexicon_digests[asked]

    def request(self, line: Line) -> Request:
        options = self._defaults | line.options
        # On another machine there is no such file: the content goes there under its digest.
        options["lexicon"] = self._lexicon_digest(options)
        # With the defaults, so that giving an option its default value changes nothing.
        spoken = {
            option.name: options.get(option.name, option.default)
            for option in options_of(SpeechOptions, "manifest")
            if option.changes_audio
        }
        voice = self._voice_digest(spoken.pop("voice"), spoken["language"])
        digest = _digest(
            [self._model, line.text, spoken, voice, *self._named_voices(line, options)]
        )
        return Request(line, options, digest)

    def _voice_digest(self, voice: str | None, language: str) -> Any:
        """Of the voice's content; where none is named, of what may speak the language."""
        own = {} if voice is not None else self._checkpoint.settings.voices
        if not is_auto(language):
            code = known_language(language, self._checkpoint.languages)
            own = {code: own[code]} if code in own else {}
        files = (self._checkpoint.voices.get(name, self._checkpoint.voice) for name in own.values())
        return [_content_digest(file) for file in files] or self._voice_digests[voice]

    def _named_voices(self, line: Line, options: dict[str, Any]) -> list[str | None]:
        """What the sound of SSML may depend on: each of the model's voices can be named in it."""
        if not (options.get("ssml") or is_ssml(line.text)):
            return []
        return [_content_digest(file) for _, file in sorted(self._checkpoint.voices.items())]


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _model_digest(checkpoint: Checkpoint, loading: LoadOptions) -> str:
    """Of all that the sound depends on beside text, voice and options of speech: the package, those
    that read texts, the model's files and how they are loaded."""
    files = (checkpoint.t3, checkpoint.s3gen, *checkpoint.tokenizer_files, checkpoint.cangjie)
    settings = checkpoint.folder / SETTINGS_FILE
    loaded = {
        option.name: getattr(loading, option.name)
        for option in options_of(LoadOptions)
        if option.changes_audio
    }
    on_gpu = loading.device == "auto" and _core.gpu_available()
    versions = [version("nightingale-tts"), *map(_installed_version, TEXT_PACKAGES)]
    contents = [_content_digest(file) for file in (*files, checkpoint.dicta, settings)]
    return _digest([versions, contents, loaded, on_gpu, _draft_digest(loading.draft)])


def _installed_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _draft_digest(draft: str | Path | None) -> str | None:
    """Of the file of a smaller model; those that are part of the model change nothing."""
    return None if draft is None or draft in KINDS else _content_digest(find_draft(draft))


def _content_digest(file: Path | None) -> str | None:
    """Of all bytes, as size and time do not tell a replaced file; None where there is no file."""
    if file is None or not file.is_file():
        return None
    digest = hashlib.sha256()
    with open(file, "rb") as opened:
        while part := opened.read(READ_BYTES):
            digest.update(part)
    return digest.hexdigest()
