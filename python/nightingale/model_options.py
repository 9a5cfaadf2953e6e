"""How a checkpoint is loaded: what `load` takes besides the model, checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._core import Error
from .kv_cache import KvOptions

DTYPES = ("float32", "float16", "bfloat16")
BITS = (8, 4)


@dataclass(frozen=True)
class ModelOptions:
    """None: as the file has it, and no draft."""

    gpu: bool
    dtype: str | None
    bits: int | None
    kv: KvOptions
    draft: str | Path | None

    @classmethod
    def checked(
        cls, gpu: bool, dtype: Any, bits: Any, kv_bits: Any, kv_budget: Any, draft: Any
    ) -> ModelOptions:
        """Of the arguments of `load`."""
        if dtype is not None and dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, not {dtype!r}")
        if bits is not None and bits not in BITS:
            raise ValueError(f"bits must be 8, 4 or None, not {bits!r}")
        kv = KvOptions.checked(kv_bits, kv_budget, gpu)
        if draft is not None:
            _check_draft(draft, kv, gpu)
        return cls(gpu, dtype, bits, kv, draft)


def _check_draft(draft: Any, kv: KvOptions, gpu: bool) -> None:
    if not isinstance(draft, (str, Path)) or not str(draft):
        raise ValueError(f"draft must be ngram, layers or a path, not {draft!r}")
    if gpu:
        raise Error(
            "draft needs a CPU: a GPU checks several tokens by other kernels than it speaks with, "
            "so that tokens could change: leave it out, or use device='cpu'"
        )
    if kv.budget > 0:
        raise Error("draft needs a whole KV cache: leave out kv_budget, or the draft")
