"""Compiles texts with Metal's own compiler, where Xcode is installed."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .instances import Instance
from .opencl import LEFT_OUT, Fault

METAL = ("xcrun", "-sdk", "macosx", "metal")
# From the oldest that MLX asks for on.
VERSIONS = ("metal3.1", "metal3.2", "metal4.0", "metal4.1")
MLX_HEADERS = ("bf16", "bf16_math", "complex", "defines", "logging", "utils")
# MLX compiles kernels with safe math.
OPTIONS = ("-x", "metal", "-Werror", "-fno-fast-math", "-c", "-o", "/dev/null")


def preamble(mlx_include: Path) -> str:
    """The headers that MLX puts before every kernel, as its build joins them."""
    folder = mlx_include / "mlx/backend/metal/kernels"
    lines = []
    for name in MLX_HEADERS:
        text = (folder / f"{name}.h").read_text()
        lines += [line for line in text.splitlines() if not LEFT_OUT.search(line)]
    return "\n".join(lines) + "\n"


def compile_text(source: Path, version: str) -> str:
    """What the compiler says where it refuses the file."""
    command = [*METAL, *OPTIONS, f"-std={version}", str(source)]
    result = subprocess.run(command, capture_output=True, text=True)
    return "" if result.returncode == 0 else result.stderr or f"exit {result.returncode}"


def known_versions(folder: Path) -> list[str]:
    """The versions of the language that the installed compiler has."""
    empty = folder / "empty.metal"
    empty.write_text("#include <metal_stdlib>\n")
    return [version for version in VERSIONS if not compile_text(empty, version)]


def compile_all(
    instances: list[Instance], versions: list[str], mlx_include: Path, folder: Path, jobs: int
) -> list[Fault]:
    """A fault for each instance and version that does not compile."""
    before = preamble(mlx_include)

    def faults(instance: Instance) -> list[Fault]:
        source = folder / f"{instance.name}.metal"
        source.write_text(before + instance.text)
        messages = [(version, compile_text(source, version)) for version in versions]
        source.unlink()
        return [Fault(f"{instance.name} ({v})", message) for v, message in messages if message]

    with ThreadPoolExecutor(jobs) as pool:
        return [fault for found in pool.map(faults, instances) for fault in found]
