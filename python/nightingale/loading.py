"""Finding a model and the device to run it on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from . import _core
from ._core import Error
from .hub import resolve
from .options import LoadOptions
from .tts import TTS

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._overrides import LoadOverrides


def load(
    model: str | Path | None = None,
    options: LoadOptions | None = None,
    **overrides: Unpack[LoadOverrides],
) -> TTS:
    """Loads a checkpoint from a folder or a hub id (owner/name); None is the embedded one.

    overrides: fields of LoadOptions, such as bits=8 or device="cpu"; they win over `options`.
    """
    options = on_device(LoadOptions.merged("load", options, overrides))
    if options.threads is not None:
        _core.set_threads(options.threads)
    return TTS(resolve(model, options.offline, options.progress, options.variant), options)


def on_device(options: LoadOptions) -> LoadOptions:
    """With "cpu" or "gpu" for the device; an Error where that device cannot do what is asked."""
    available = _core.gpu_available()
    if options.device == "gpu" and not available:
        raise Error(
            "device='gpu', but this MLX finds none: on Linux install mlx-cuda-13 over mlx-cpu "
            "(see README), or use device='cpu'"
        )
    gpu = available and options.device != "cpu"
    if options.kv_budget is not None and gpu:
        raise Error("kv_budget works on the CPU only: leave it out, or use device='cpu'")
    if options.draft is not None and gpu:
        raise Error(
            "draft needs a CPU: a GPU checks several tokens by other kernels than it speaks with, "
            "so that tokens could change: leave it out, or use device='cpu'"
        )
    if options.draft is not None and options.kv_budget is not None:
        raise Error("draft needs a whole KV cache: leave out kv_budget, or the draft")
    return replace(options, device="gpu" if gpu else "cpu")
