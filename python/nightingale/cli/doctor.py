"""`doctor`: whether this installation works, and how well."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

from .. import _core
from .._core import Error
from ..checkpoint import embedded_model
from ..tts import TTS
from .options import add_json, add_model_options, load_model

SENTENCE = "Hello there."
SELF_TEST_TOKENS = 50


def add_commands(commands: Any) -> None:
    doctor = commands.add_parser(
        "doctor", help="say what machine, libraries and kernels are used, and what is broken"
    )
    add_json(doctor)
    add_model_options(doctor)
    doctor.set_defaults(run=_doctor)


def _doctor(args: argparse.Namespace) -> int:
    from . import machine

    report: dict[str, Any] = {
        "machine": machine.machine(),
        "python": machine.python(),
        "packages": machine.packages(),
        "extras": machine.extras(),
        "mlx": machine.mlx_library(),
        "voices": _voice_folder(),
        "hub": _hub(),
    }
    tts = None
    if args.model is not None or embedded_model() is not None:
        report["model"], tts = _model(args)
    report["kernels"] = _kernels(tts)
    report["problems"] = _problems(report)
    report["notes"] = _notes(report)
    if args.json:
        print(json.dumps(report))
    else:
        _print(report)
    return 1 if report["problems"] else 0


def _voice_folder() -> dict[str, Any]:
    from ..voice_folder import VoiceFolder, default_voice_folder

    folder = VoiceFolder(default_voice_folder())
    try:
        return {"folder": str(folder.folder), "names": folder.names()}
    except Error as error:
        return {"folder": str(folder.folder), "names": [], "error": str(error)}


def _hub() -> dict[str, Any]:
    """Where models from the hub are kept, and which are there."""
    try:
        from huggingface_hub.constants import HF_HUB_CACHE
    except ImportError as error:
        return {"cache": None, "models": [], "writable": False, "error": _one_line(error)}
    cache = Path(HF_HUB_CACHE)
    try:
        folders = [path.name for path in cache.iterdir() if path.name.startswith("models--")]
    except OSError:
        folders = []
    models = sorted(name.removeprefix("models--").replace("--", "/", 1) for name in folders)
    place = next(path for path in (cache, *cache.parents) if path.exists())
    writable = os.access(place, os.W_OK | os.X_OK)
    return {"cache": str(cache), "models": models, "writable": writable}


def _model(args: argparse.Namespace) -> tuple[dict[str, Any], TTS | None]:
    """What was loaded and whether it speaks."""
    try:
        tts = load_model(args)
    except (Error, ValueError, OSError) as error:
        return {"model": args.model, "error": str(error)}, None
    described = {**tts.info, "voices": tts.voices, "languages": list(tts.languages)}
    try:
        described["self_test"] = _self_test(tts)
    except (Error, ValueError, RuntimeError) as error:
        described["error"] = f"it cannot say {SENTENCE!r}: {error}"
    return described, tts


def _self_test(tts: TTS) -> dict[str, Any]:
    import numpy as np

    audio = tts.generate(SENTENCE, max_tokens=SELF_TEST_TOKENS)
    if not np.isfinite(audio.samples).all():
        raise Error("the sound holds values that are not finite")
    peak = float(np.abs(audio.samples).max())
    if not 0 < peak <= 1:
        raise Error(f"the sound's peak is {peak}; expected above 0 and at most 1")
    return {
        "text": SENTENCE,
        "seconds": audio.duration,
        "tokens": len(audio.tokens),
        "peak": peak,
        "timings": audio.timings,
    }


def _kernels(tts: TTS | None) -> dict[str, Any]:
    """What the processor gets and, of a loaded model, what each hot path runs on."""
    cpu = {"simd": _core.simd_name(), "blas": _core.blas_name(), "threads": _core.threads()}
    if tts is None:
        return cpu
    on_gpu = tts.info["device"] == "gpu"
    here = "MLX's GPU kernels" if on_gpu else _core.simd_name()
    paths = {"t3": here}
    if "flow" in tts.info:
        amx = not on_gpu and tts.info["flow"]["products"] == "bfloat16"
        paths |= {"flow": f"{here} and AMX" if amx else here, "vocoder": here}
    return {**cpu, "paths": paths}


def _problems(report: dict[str, Any]) -> list[str]:
    """What does not work."""
    problems = [
        f"{name} is not installed" for name, found in report["packages"].items() if found is None
    ]
    mlx, built_for = report["mlx"], report["packages"]["mlx"]
    if built_for is not None and built_for != mlx["version"]:
        problems.append(f"mlx {built_for} is installed, but its library is {mlx['version']}")
    problems += _unimportable(("soundfile", "soxr", "tokenizers", "tqdm"))
    parts = (report["voices"], report["hub"], report.get("model", {}))
    return problems + [part["error"] for part in parts if "error" in part]


def _unimportable(names: tuple[str, ...]) -> list[str]:
    from importlib import import_module

    found = []
    for name in names:
        try:
            import_module(name)
        except (ImportError, OSError) as error:
            found.append(f"{name} cannot be imported: {_one_line(error)}")
    return found


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _notes(report: dict[str, Any]) -> list[str]:
    """What works, but not as well as it could."""
    notes = []
    mlx, machine, kernels = report["mlx"], report["machine"], report["kernels"]
    if len(mlx["installed"]) > 1:
        notes.append(
            f"{' and '.join(mlx['installed'])} are the same file; {mlx['library']} is what is "
            "there. Uninstall the others, then install the one you want again"
        )
    if mlx["library"] == "cuda" and mlx["gpu"] is None:
        notes.append("MLX is built for CUDA but finds no GPU: the CPU is used")
    if kernels["simd"] == "plain":
        notes.append("this processor has neither AVX2 nor NEON: the CPU runs plain loops, slowly")
    flow = report.get("model", {}).get("flow")
    if flow and flow["device"] == "cpu" and "amx_bf16" in machine["instructions"]:
        if flow["dtype"] != "bfloat16":
            notes.append("this processor has AMX: --dtype bfloat16 runs the flow on it")
        elif flow["products"] != "bfloat16":
            notes.append("this processor has AMX, but the system does not let it be used")
    if kernels["threads"] > machine["cores"]:
        notes.append(f"{kernels['threads']} threads share {machine['cores']} cores")
    if not report["hub"]["writable"] and "error" not in report["hub"]:
        notes.append(f"{report['hub']['cache']} cannot be written: models cannot be downloaded")
    return notes


def _print(report: dict[str, Any]) -> None:
    machine, mlx, model = report["machine"], report["mlx"], report.get("model", {})
    lines = {
        "system": f"{machine['system']}, {machine['architecture']}",
        "processor": f"{machine['processor']}, {machine['cores']} cores",
        "memory": f"{machine['memory_bytes'] / 2**30:.1f} GiB",
        "instructions": " ".join(machine["instructions"]),
        "python": f"{report['python']['version']}, {report['python']['executable']}",
        "packages": _versions(report["packages"]),
        **{f"extra {name}": _versions(found) for name, found in report["extras"].items()},
        "mlx library": f"{mlx['library']} {mlx['version']} ({_versions(mlx['installed'])})",
        "gpu": mlx["gpu"] or "none",
        "cpu kernels": f"{report['kernels']['simd']}, {report['kernels']['threads']} threads",
        "blas": report["kernels"]["blas"],
        "voice folder": f"{report['voices']['folder']}: {_list(report['voices']['names'])}",
        "hub cache": f"{report['hub']['cache']}: {_list(report['hub']['models'])}",
    }
    if "t3" in model:
        dtypes = f"T3 {model['t3']['dtype']}"
        if "flow" in model:
            dtypes += f", flow {model['flow']['dtype']} (products {model['flow']['products']})"
        lines["model"] = f"{model['model']}: {model['family']}, {dtypes}, on {model['device']}"
        lines["voices"] = _list(model["voices"])
        paths = report["kernels"]["paths"].items()
        lines["hot paths"] = ", ".join(f"{path}: {kernel}" for path, kernel in paths)
    if "self_test" in model:
        test = model["self_test"]
        rtf = test["timings"]["rtf"]
        lines["self-test"] = f"said {test['seconds']:.2f} s of speech at {rtf:.2f} times real time"
    for name, value in lines.items():
        print(f"{name:<16}{value}")
    for note in report["notes"]:
        print(f"note: {note}")
    for problem in report["problems"]:
        print(f"problem: {problem}")
    print("something is broken" if report["problems"] else "all is well")


def _versions(found: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {version or '(none)'}" for name, version in found.items())


def _list(names: list[str]) -> str:
    return ", ".join(names) or "none"
