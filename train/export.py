"""Exports the weights of all stages as one checkpoint in the official file layout, with voices.

    python -m train.export OUT MODEL [--voice NAME=RECORDING ...] [--flow flow] [--temperature 0.4]
                           [--average-t3] [--language-voice es=Anna ...]

OUT has t3, text_tokenizer, flow or meanflow, vocoder, speech_tokenizer and speakers. The first
voice is also the default one, but for languages with one of their own. The temperature is the best
one for this T3: its logits are scaled so that the default of `generate`, 0.8, has that effect.
--average-t3 takes the mean of the weights with the best validation loss and the last ones. MODEL
appears whole or not at all.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import nightingale
from nightingale.checkpoint import VOICES_FOLDER
from nightingale.family import MULTILINGUAL_TOKENIZER
from nightingale.model_settings import SETTINGS_FILE, FlowSettings
from nightingale.voice_folder import voice_name

from .options import command_parser
from .state import load_stage, write_json
from .text_tokenizer import LANGUAGES

T3_FILE = "t3_mtl23ls_v2.safetensors"
VOICE_ENCODER_FILE = "ve.safetensors"
DEFAULT_VOICE_FILE = "conds.safetensors"
X_VECTOR_PREFIX = "speaker_encoder."
DEFAULT_TEMPERATURE = 0.8  # of `generate`
# The first that exists is the default.
FLOWS = {"meanflow": "s3gen_meanflow.safetensors", "flow": "s3gen.safetensors"}


def export(
    out: Path,
    model: Path,
    voices: dict[str, Path],
    flow: str | None = None,
    temperature: float = DEFAULT_TEMPERATURE,
    flow_settings: FlowSettings | None = None,
    average_t3: bool = False,
    language_voices: dict[str, str] | None = None,
) -> None:
    """Writes the checkpoint and bakes its voices with it."""
    if unknown := set((language_voices or {}).values()) - voices.keys():
        raise ValueError(f"there is no voice {sorted(unknown)[0]!r} to speak a language")
    if model.exists():
        raise FileExistsError(f"{model} already exists; name a new folder")
    model.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{model.name}.", dir=model.parent))
    try:
        t3, facts = load_stage(out / "t3.safetensors")
        if average_t3 and (last := out / "t3_last.safetensors").exists():
            t3 = {
                name: (x.float() + t3[name].float()) / 2 for name, x in load_stage(last)[0].items()
            }
        _write_t3(out, staging, t3, facts["settings"], temperature, flow_settings or FlowSettings())
        _write_s3gen(out, staging, flow)
        if voices:
            _bake(staging, voices)
        if language_voices:  # last, because a model with a voice that is missing does not load
            settings = json.loads((staging / SETTINGS_FILE).read_text("utf-8"))
            write_json(staging / SETTINGS_FILE, settings | {"voices": language_voices})
        staging.chmod(0o755)
        staging.rename(model)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _write_t3(
    out: Path,
    folder: Path,
    t3: dict[str, Tensor],
    settings: dict[str, Any],
    temperature: float,
    flow_settings: FlowSettings,
) -> None:
    """Writes T3, the settings and the text tokenizer."""
    # Repetition penalty and guidance are linear in the logits: the scale does not affect them.
    t3["speech_head.weight"] = t3["speech_head.weight"] * (DEFAULT_TEMPERATURE / temperature)
    _save(t3, folder / T3_FILE)
    all_settings = {
        "t3": settings,
        "s3gen": asdict(flow_settings),
        "languages": list(LANGUAGES),
    }
    write_json(folder / SETTINGS_FILE, all_settings)
    shutil.copyfile(out / "text_tokenizer.json", folder / MULTILINGUAL_TOKENIZER)


def _write_s3gen(out: Path, folder: Path, flow: str | None) -> None:
    """Writes S3Gen and the voice encoder."""
    speakers, _ = load_stage(out / "speakers.safetensors")
    x_vector = {name: x for name, x in speakers.items() if name.startswith(X_VECTOR_PREFIX)}
    _save(
        {name: x for name, x in speakers.items() if name not in x_vector},
        folder / VOICE_ENCODER_FILE,
    )

    flow = flow or next(name for name in FLOWS if (out / f"{name}.safetensors").exists())
    parts = [load_stage(out / f"{stage}.safetensors")[0] for stage in (flow, "vocoder")]
    # In the saved type, because the other stages were trained on its tokens.
    tokenizer, _ = load_stage(out / "speech_tokenizer.safetensors")
    _save({**parts[0], **parts[1], **tokenizer, **x_vector}, folder / FLOWS[flow])


def _save(tensors: dict[str, Tensor], path: Path) -> None:
    halved = {
        name: x.half() if x.dtype == torch.float32 else x for name, x in sorted(tensors.items())
    }
    save_file(halved, path, {"format": "pt"})


def _bake(folder: Path, voices: dict[str, Path]) -> None:
    tts = nightingale.load(folder, device="cpu")
    (folder / VOICES_FOLDER).mkdir()
    for number, (name, recording) in enumerate(voices.items()):
        file = folder / VOICES_FOLDER / f"{name}.safetensors"
        tts.bake_voice(recording).save(file)
        _save(load_file(file), file)  # in float16
        if number == 0:
            shutil.copyfile(file, folder / DEFAULT_VOICE_FILE)


def _named(given: str) -> tuple[str, Path]:
    name, _, recording = given.partition("=")
    return voice_name(name), Path(recording)


def _of_language(given: str) -> tuple[str, str]:
    language, _, name = given.partition("=")
    return language, voice_name(name)


def main(arguments: list[str]) -> None:
    parser = command_parser("export", __doc__, "out", "model")
    parser.add_argument(
        "--voice", action="append", type=_named, default=[], metavar="NAME=RECORDING"
    )
    parser.add_argument(
        "--language-voice",
        action="append",
        type=_of_language,
        default=[],
        metavar="LANGUAGE=NAME",
        help="the voice that speaks a language where none is named",
    )
    parser.add_argument("--flow", choices=FLOWS, help="default: meanflow if there is one")
    parser.add_argument(
        "--temperature", type=float, default=DEFAULT_TEMPERATURE, help="the effect of 0.8"
    )
    usual = FlowSettings()
    parser.add_argument(
        "--flow-temperature", type=float, default=usual.temperature, help="of the flow's noise"
    )
    parser.add_argument(
        "--lookahead", type=int, default=usual.lookahead, help="lookahead tokens of a stream"
    )
    parser.add_argument(
        "--prompt-tokens", type=int, help="of a voice's prompt that the flow sees; default: all"
    )
    parser.add_argument(
        "--average-t3", action="store_true", help="average the best and the last weights of T3"
    )
    options = parser.parse_args(arguments)
    if not options.temperature > 0:
        parser.error(f"--temperature must be above 0, not {options.temperature}")
    export(
        options.out,
        options.model,
        dict(options.voice),
        options.flow,
        options.temperature,
        FlowSettings(options.flow_temperature, options.lookahead, options.prompt_tokens),
        options.average_t3,
        dict(options.language_voice),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
