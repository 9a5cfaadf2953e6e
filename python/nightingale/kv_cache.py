"""How T3's KV cache is kept: what `load` takes, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._core import Error
from .arguments import number

KV_BITS = (8, 4)


@dataclass(frozen=True)
class KvOptions:
    """bits: of codes, None for what suits the weights; budget: share of the speech that is kept, 0
    for all of it."""

    bits: int | None = None
    budget: float = 0.0

    @classmethod
    def checked(cls, kv_bits: Any, kv_budget: Any, gpu: bool) -> KvOptions:
        """Of the arguments of `load`."""
        if kv_bits is not None and (not isinstance(kv_bits, int) or kv_bits not in KV_BITS):
            raise ValueError(f"kv_bits must be 8, 4 or None, not {kv_bits!r}")
        if kv_budget is None:
            return cls(kv_bits)
        kv_budget = number("kv_budget", kv_budget)
        if not 0.0 < kv_budget <= 1.0:
            raise ValueError(f"kv_budget must be above 0 and at most 1, not {kv_budget}")
        if gpu:
            raise Error("kv_budget works on the CPU only: leave it out, or use device='cpu'")
        return cls(kv_bits, kv_budget)

    def bits_beside(self, weight_bits: int | None) -> int:
        """Of the cache, 0 for floats: weights in codes have a cache of 8 bits unless told."""
        if self.bits is not None:
            return self.bits
        return 0 if weight_bits is None else 8
