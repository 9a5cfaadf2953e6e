"""Apple's chips: memory bandwidth and peak rates of their GPUs, and where the figures are from."""

from __future__ import annotations

from dataclasses import dataclass

# Apple publishes bandwidths of Macs and, up to the M2, FLOP rates; for the rest others' figures.
SOURCES = {
    "apple": "Apple's newsroom and technical specifications",
    "cores": "by GPU cores from another chip of the generation, clocks taken as equal",
    "hmc": "hmc-tech.com, from core counts and clocks",
    "askgeek": "askgeek.io and topcpu.net, from core counts and clocks",
    "m5": "michaelstinkerings.org/apple-m5-gpu-roofline-analysis: 10 cores at a measured 1578 MHz",
    "a19": "tzakharko.github.io/apple-neural-accelerators-benchmark, measured on an A19",
}


@dataclass(frozen=True)
class Chip:
    name: str
    bandwidth: float  # GB/s
    float32: float  # TFLOP/s of the shader cores
    float16: float
    source: str  # of the rates
    matrix: float | None = None  # TFLOP/s of matrix units, float16


def _macs() -> list[Chip]:
    def chip(name: str, bandwidth: float, rate: float, source: str) -> Chip:
        return Chip(name, bandwidth, rate, rate, source)

    m2, m4, m5 = 3.6 / 10, 6.02 / 16, 0.256 * 1.578  # TFLOP/s of a core
    # Two float16 operations go where one float32 does; measured on an A19, 1.7 times the rate.
    half, matrix = 3.2 / 1.88, 1.024 * 1.578
    return [
        chip("M1", 68, 2.6, "apple"),
        chip("M1 Pro", 200, 5.2, "apple"),
        chip("M1 Max", 400, 10.4, "apple"),
        chip("M1 Ultra", 800, 21.0, "apple"),
        chip("M2", 100, 3.6, "apple"),
        chip("M2 Pro", 200, 19 * m2, "cores"),
        chip("M2 Max", 400, 38 * m2, "cores"),
        chip("M2 Ultra", 800, 76 * m2, "cores"),
        chip("M3", 100, 3.58, "hmc"),
        chip("M3 Pro", 150, 6.44, "hmc"),
        chip("M3 Max", 400, 14.32, "hmc"),
        chip("M3 Ultra", 819, 21.47 * 80 / 60, "cores"),
        chip("M4", 120, 3.76, "hmc"),
        chip("M4 Pro", 273, 20 * m4, "cores"),
        chip("M4 Max", 546, 13.74 * 40 / 32, "cores"),
        Chip("M5", 153, 10 * m5, 10 * m5 * half, "m5", 10 * matrix),
        Chip("M5 Pro", 307, 20 * m5, 20 * m5 * half, "cores", 20 * matrix),
        Chip("M5 Max", 614, 40 * m5, 40 * m5 * half, "cores", 40 * matrix),
    ]


MACS = _macs()
IPHONES = [
    Chip("A15", 34.1, 1.71, 1.71, "askgeek"),
    Chip("A16", 51.2, 1.79, 1.79, "askgeek"),
    Chip("A17 Pro", 51.2, 2.15, 2.15, "hmc"),
    Chip("A18", 60, 1.86, 1.86, "hmc"),
    Chip("A18 Pro", 60, 1.86 * 6 / 5, 1.86 * 6 / 5, "cores"),
    Chip("A19", 68.3, 1.88, 3.2, "a19", 7.5),
    Chip("A19 Pro", 76.8, 1.88 * 6 / 5, 3.2 * 6 / 5, "cores", 7.5 * 6 / 5),
]
