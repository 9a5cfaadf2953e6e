"""What this machine and this installation are, for `doctor`."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib import metadata, util
from pathlib import Path
from typing import Any

from .. import _core

REQUIRED = ("mlx", "numpy", "soundfile", "soxr", "tokenizers", "huggingface-hub", "tqdm")
# By extra: what is installed and what is imported.
OPTIONAL = {
    "languages": {
        "spacy-pkuseg": "spacy_pkuseg",
        "pykakasi": "pykakasi",
        "dicta-onnx": "dicta_onnx",
        "russian-text-stresser": "russian_text_stresser",
    },
    "playback": {"sounddevice": "sounddevice"},
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


def python() -> dict[str, Any]:
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
    }


def version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def packages() -> dict[str, str | None]:
    names = ("nightingale-tts", *REQUIRED)
    if sys.platform == "linux":
        names += ("scipy-openblas32",)
    return {name: version(name) for name in names}


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
