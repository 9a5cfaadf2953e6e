"""`doctor`: whether this installation works, and how well."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from importlib import import_module, metadata, util
from pathlib import Path
from typing import Any

from .. import _core
from .._core import Error
from ..checkpoint import embedded_model
from ..tts import TTS
from ..voice_folder import VoiceFolder
from .options import Arguments, add_shared, factor_text, one_line

SENTENCE = "Hello there."
SELF_TEST_TOKENS = 50
REQUIRED = ("mlx", "numpy", "soundfile", "soxr", "tokenizers", "huggingface-hub", "tqdm")
# By extra: what is installed and what is imported.
OPTIONAL = {
    "languages": {
        "spacy-pkuseg": "spacy_pkuseg",
        "pykakasi": "pykakasi",
        "dicta-onnx": "dicta_onnx",
        "russian-text-stresser": "russian_text_stresser",
    },
    "detection": {"py3langid": "py3langid"},
    "markup": {"markdown-it-py": "markdown_it"},
    "playback": {"sounddevice": "sounddevice"},
    "plot": {"matplotlib": "matplotlib"},
    "server": {
        "fastapi": "fastapi",
        "uvicorn": "uvicorn",
        "websockets": "websockets",
        "python-multipart": "python_multipart",
        "prometheus-client": "prometheus_client",
        "av": "av",
    },
    "wyoming": {"wyoming": "wyoming"},
    "mcp": {"mcp": "mcp"},
    "ray": {"ray": "ray"},
}
# The libraries of MLX: distributions that all bring the same file.
MLX_LIBRARIES = {
    "mlx-cpu": "cpu",
    "mlx-cuda-13": "cuda",
    "mlx-cuda-12": "cuda",
    "mlx-metal": "metal",
}
# As Linux and macOS name the instructions that speech gains from.
INSTRUCTIONS = (
    *("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"),
    *("avx512_bf16", "amx_tile", "amx_bf16", "amx_int8"),
    *("asimd", "asimdhp", "asimddp", "bf16", "i8mm", "sve", "sme"),
)


def add_commands(commands: Any) -> None:
    doctor = commands.add_parser(
        "doctor", help="say what machine, libraries and kernels are used, and what is broken"
    )
    add_shared(doctor)
    doctor.set_defaults(run=_doctor)


def _doctor(args: Arguments) -> int:
    report: dict[str, Any] = {
        "machine": machine(),
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "executable": sys.executable,
        },
        "packages": packages(),
        "extras": extras(),
        "mlx": mlx_library(),
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
    folder = VoiceFolder()
    try:
        return {"folder": str(folder.folder), "names": folder.names()}
    except Error as error:
        return {"folder": str(folder.folder), "names": [], "error": str(error)}


def _hub() -> dict[str, Any]:
    """Where models from the hub are kept, and which are there."""
    try:
        from huggingface_hub.constants import HF_HUB_CACHE
    except ImportError as error:
        return {"cache": None, "models": [], "writable": False, "error": one_line(error)}
    cache = Path(HF_HUB_CACHE)
    try:
        folders = [path.name for path in cache.iterdir() if path.name.startswith("models--")]
    except OSError:
        folders = []
    models = sorted(name.removeprefix("models--").replace("--", "/", 1) for name in folders)
    place = next(path for path in (cache, *cache.parents) if path.exists())
    writable = os.access(place, os.W_OK | os.X_OK)
    return {"cache": str(cache), "models": models, "writable": writable}


def _model(args: Arguments) -> tuple[dict[str, Any], TTS | None]:
    """What was loaded and whether it speaks."""
    try:
        tts = args.load_model()
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
    cpu = {
        "simd": _core.simd_name(),
        "bf16": _core.bf16_name() or None,
        "blas": _core.blas_name(),
        "threads": _core.threads(),
    }
    if tts is None:
        return cpu
    on_gpu = tts.info["device"] == "gpu"
    here = "MLX's GPU kernels" if on_gpu else _core.simd_name()
    paths = {"t3": here}
    if "flow" in tts.info:
        units = not on_gpu and tts.info["flow"]["products"] == "bfloat16"
        flow = f"{here} and {_core.bf16_name()}" if units else here
        paths |= {"flow": flow, "vocoder": here}
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
    found = []
    for name in names:
        try:
            import_module(name)
        except (ImportError, OSError) as error:
            found.append(f"{name} cannot be imported: {one_line(error)}")
    return found


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
    if kernels["bf16"] and flow and flow["device"] == "cpu" and flow["products"] != "bfloat16":
        notes.append(
            f"this processor multiplies bfloat16 ({kernels['bf16']}): --dtype bfloat16 or --bits 8 "
            "makes the flow faster"
        )
    if "amx_bf16" in machine["instructions"] and kernels["bf16"] != "amx":
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
        lines["sound tags"] = _list(model["sound_tags"])
        paths = report["kernels"]["paths"].items()
        lines["hot paths"] = ", ".join(f"{path}: {kernel}" for path, kernel in paths)
    if "self_test" in model:
        test = model["self_test"]
        factor = factor_text(test["timings"]["rtf"])
        lines["self-test"] = f"said {test['seconds']:.2f} s of speech, {factor}"
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


def machine() -> dict[str, Any]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "system": platform.platform(),
        "architecture": platform.machine(),
        "processor": _processor(),
        "cores": cores,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "instructions": _instructions(),
    }


def version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def packages() -> dict[str, str | None]:
    blas = ("scipy-openblas32",) if sys.platform == "linux" else ()
    return {name: version(name) for name in ("nightingale-tts", *REQUIRED, *blas)}


def extras() -> dict[str, dict[str, str | None]]:
    """Versions of the optional packages; one without a distribution of its own is "present"."""
    return {
        extra: {
            name: version(name) or ("present" if util.find_spec(module) else None)
            for name, module in modules.items()
        }
        for extra, modules in OPTIONAL.items()
    }


def mlx_library() -> dict[str, Any]:
    """Which of MLX's libraries is loaded: the newest installed one overwrites the others' file."""
    installed = {name: found for name in MLX_LIBRARIES if (found := version(name)) is not None}
    owners = [name for name in installed if _owns_its_library(name)]
    return {
        "version": _core.mlx_version(),
        "library": MLX_LIBRARIES[owners[0]] if owners else "unknown",
        "installed": installed,
        "gpu": _gpu(),
    }


def _owns_its_library(distribution: str) -> bool:
    """Whether the library on the disk is the one that this distribution brought."""
    libraries = ("libmlx.so", "libmlx.dylib")
    for file in metadata.files(distribution) or []:
        if file.name in libraries:
            found = Path(file.locate())
            return found.is_file() and found.stat().st_size == file.size
    return False


def _gpu() -> str | None:
    if not _core.gpu_available():
        return None
    import mlx.core as mx

    return str(mx.device_info(mx.Device(mx.gpu)).get("device_name", "present"))


def _processor() -> str:
    if sys.platform == "darwin":
        return _sysctl("machdep.cpu.brand_string")
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def _instructions() -> list[str]:
    if sys.platform == "darwin":
        features = {"asimd": "AdvSIMD", "asimdhp": "FEAT_FP16", "asimddp": "FEAT_DotProd"}
        features |= {"bf16": "FEAT_BF16", "i8mm": "FEAT_I8MM", "sme": "FEAT_SME"}
        return [name for name, key in features.items() if _sysctl(f"hw.optional.arm.{key}") == "1"]
    flags = (_cpuinfo("flags") or _cpuinfo("Features")).split()
    return [name for name in INSTRUCTIONS if name in flags]


def _cpuinfo(key: str) -> str:
    """The first processor's line of this name in what Linux tells; empty where there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    pairs = (line.partition(":") for line in lines)
    return next((value.strip() for name, _, value in pairs if name.strip() == key), "")


def _sysctl(name: str) -> str:
    done = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True)
    return done.stdout.strip()
