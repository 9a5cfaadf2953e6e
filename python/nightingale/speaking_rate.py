"""The speaking rate of models whose T3 was trained to speak slower and faster."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SpeakingRate:
    """What T3's emotion input is told for a rate: "speaking_rate" in nightingale.json."""

    points: tuple[tuple[float, float], ...]  # rates, rising, and what the input is for them

    def split(self, speed: float) -> tuple[float, float]:
        """What the input is for a speed, and the rest of the speed, by which sound is stretched:
        1 for the rates that T3 has learned."""
        rates, values = zip(*self.points, strict=True)
        rate = min(max(speed, rates[0]), rates[-1])
        return float(np.interp(math.log(rate), np.log(rates), values)), speed / rate
