"""Finding a model and the device to run it on."""

from __future__ import annotations

from pathlib import Path

from . import _core
from ._core import Error
from .hub import resolve
from .model_options import ModelOptions
from .tts import TTS

DEVICES = ("auto", "cpu", "gpu")


def load(
    model: str | Path | None = None,
    *,
    bits: int | None = None,
    dtype: str | None = None,
    kv_bits: int | None = None,
    kv_budget: float | None = None,
    draft: str | Path | None = None,
    device: str = "auto",
    threads: int | None = None,
    offline: bool = False,
    progress: bool | None = None,
) -> TTS:
    """Loads a checkpoint from a folder or a hub id (owner/name); None is the embedded one.

    bits: 8 or 4 for the matrices that T3 decodes with, and on the CPU 8 for S3Gen's; None keeps
    the file's. dtype: float32, float16 or bfloat16 for the weights; None keeps the file's, or
    takes float16 beside bits. kv_bits: 8 or 4 for T3's KV cache; None is 8 with bits and else the
    weights' type. kv_budget: share of the speech that the cache keeps, above 0 and at most 1, on a
    CPU; None keeps all.
    draft: what proposes tokens for T3 to check several at a time, on a CPU, without changing any:
    ngram, layers, or the path of a smaller T3 made for this model. device: auto takes a GPU where
    MLX has one. threads: of the CPU backend; None means all cores. offline: use only what an
    earlier download left. progress: False hides the download's progress bars.
    """
    options = ModelOptions.checked(_wants_gpu(device), dtype, bits, kv_bits, kv_budget, draft)
    if threads is not None:
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise ValueError(f"threads must be a whole number above 0, not {threads!r}")
        _core.set_threads(threads)
    return TTS(resolve(model, offline, progress), options)


def _wants_gpu(device: str) -> bool:
    if device not in DEVICES:
        raise ValueError(f"device must be one of {', '.join(DEVICES)}, not {device!r}")
    available = _core.gpu_available()
    if device == "gpu" and not available:
        raise Error(
            "device='gpu', but this MLX finds none: on Linux install mlx-cuda-13 over mlx-cpu "
            "(see README), or use device='cpu'"
        )
    return available and device != "cpu"
