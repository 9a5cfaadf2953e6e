"""Compiles texts for Metal with clang, as C++ for OpenCL.

That language has Metal's address spaces and, for methods without one, a generic `this`. What clang
19 rejects although it is MSL is rewritten first:

- A template of a kernel becomes a kernel for each instance: the template's parameters are constants
  and types at the beginning of its body, and attributes of parameters are left out.
- All instances of a kernel are one file, with one copy of the header that they share.
- Before them stand MLX's own headers, as the installed package has them, and a `metal_stdlib` of
  ours. complex.h is a stand-in: clang rejects constructors that have an address space.

Two rules of MSL are looked up in clang's syntax tree, because C++ for OpenCL does not have them: a
method without an address space has a generic `this` (an error from MSL 4.1 on), and structs with
data have no base classes.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .instances import Instance

INCLUDES = Path(__file__).parent / "include"
LANGUAGE = [
    *("-x", "clcpp", "-cl-std=clc++2021", "-target", "spir64"),
    *("-cl-no-stdinc", "-nostdinc", "-DMLX_METAL_JIT", f"-I{INCLUDES}"),
]
# Narrowing floats is an error; so is everything else that clang warns about. Aliases of absent
# inputs are often not used, and loops are unrolled where the compiler can.
WARNINGS = [
    *("-Werror", "-Wall", "-Wextra", "-Wfloat-conversion", "-Wimplicit-float-conversion"),
    *("-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-unused-parameter"),
    *("-Wno-unused-local-typedef", "-Wno-pass-failed"),
]
METHOD = re.compile(
    r"CXXMethodDecl (?!.* implicit ).* (\S+) '.*\) (?:const )?__generic'(?!.* static)"
)
BASE = re.compile(r"-(?:public|protected|private) '(.*?)'")
MLX_HEADERS = ("bf16", "bf16_math", "defines", "logging", "utils")
LEFT_OUT = re.compile(r'#include ".*\.h"|#pragma once')


@dataclass(frozen=True)
class Fault:
    kernel: str
    message: str


def preamble(mlx_include: Path) -> str:
    """The headers that MLX puts before every kernel: utils.h and those it includes."""
    folder = mlx_include / "mlx/backend/metal/kernels"
    lines = ["#pragma clang system_header", "#include <mlx_complex>"]
    for name in MLX_HEADERS:
        text = (folder / f"{name}.h").read_text()
        lines += [line for line in text.splitlines() if not LEFT_OUT.search(line)]
    return "\n".join(lines) + "\n"


def concrete(instance: Instance) -> str:
    """A kernel that is no template."""
    signature = re.sub(r" \[\[[^\]]*\]\]", "", instance.parts["signature"])
    constants = "".join(
        f"using {name} = {value}; "
        if kind == "typename"
        else f"constexpr {kind} {name} = {value}; "
        for kind, name, value in instance.constants
    )
    return (
        f'#line 1 "{instance.name}"\n__kernel void {instance.name}(\n{signature}) {{\n'
        f"{constants}\n{instance.parts['body']}\n}}\n"
    )


class Compiler:
    """clang with the headers before kernels compiled once, in a folder of its own."""

    def __init__(self, clang: str, mlx_include: Path, folder: Path) -> None:
        self.clang = clang
        self.folder = folder
        (folder / "preamble.h").write_text(preamble(mlx_include))
        source = folder / "preamble.cl"
        source.write_text('#include "preamble.h"\n')
        self.header = folder / "preamble.pch"
        message = self._run(["-c", "-Xclang", "-emit-pch", str(source), "-o", str(self.header)])
        if message:
            raise RuntimeError(f"MLX's headers do not compile:\n{message}")

    def _clang(self, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        command = [self.clang, *LANGUAGE, *WARNINGS, *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    def _run(self, arguments: list[str]) -> str:
        result = self._clang(arguments)
        return "" if result.returncode == 0 else result.stderr or f"exit {result.returncode}"

    def declarations(self, name: str, header: str, source: Path) -> str:
        """What the structs of a header have that MSL does not."""
        source.write_text(header)
        tree = ["-fsyntax-only", "-fno-color-diagnostics", "-Xclang", "-ast-dump"]
        lines = self._clang(["-include-pch", str(self.header), *tree, str(source)]).stdout
        found = [f"the method {m} has no address space" for m in METHOD.findall(lines)]
        found += [f"{base} is a base class" for base in BASE.findall(lines)]
        return "".join(f"{name}: {one}\n" for one in dict.fromkeys(found))

    def compile(
        self, name: str, header: str, instances: Sequence[Instance], source: Path
    ) -> Fault | None:
        """What is wrong with instances that share a header. source: a file to use"""
        kernels = "".join(concrete(instance) for instance in instances)
        source.write_text(f'#line 1 "{name} header"\n{header}{kernels}')
        message = self._run(["-include-pch", str(self.header), "-fsyntax-only", str(source)])
        message += self.declarations(name, header, source)
        return Fault(name, message) if message else None

    def compile_all(self, instances: list[Instance], jobs: int) -> list[Fault]:
        """What is wrong with any, a fault for each kernel and header."""
        groups: dict[tuple[str, str], list[Instance]] = {}
        for instance in instances:
            key = instance.kernel, instance.parts["header"]
            groups.setdefault(key, []).append(instance)
        largest_first = sorted(groups.items(), key=lambda group: -len(group[1]))

        def compile_group(number: int) -> Fault | None:
            (name, header), members = largest_first[number]
            return self.compile(name, header, members, self.folder / f"{number}.cl")

        with ThreadPoolExecutor(jobs) as pool:
            return [fault for fault in pool.map(compile_group, range(len(groups))) if fault]
