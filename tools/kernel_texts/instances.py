"""The texts that MLX generates for kernels, and their parts."""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PREFIX = "custom_kernel_"
TEXT = re.compile(
    r"(?P<header>.*)template <(?P<parameters>[^\n]*)>\n"
    r"\[\[kernel\]\] void (?P<name>\w+)\(\n(?P<signature>.*?)\) \{\n"
    r"(?P<body>.*)\n\}\n\n"
    r"template \[\[host_name\(\"(?P=name)\"\)\]\] \[\[kernel\]\] "
    r"[^\n]*<(?P<arguments>[^<>\n]*)>;\n",
    re.DOTALL,
)


@dataclass(frozen=True)
class Instance:
    """A kernel for one set of types, constants and threads, as MLX hands it to Metal's compiler."""

    name: str
    text: str

    @cached_property
    def parts(self) -> re.Match[str]:
        match = TEXT.fullmatch(self.text)
        if not match:
            raise ValueError(f"{self.name}: not a text as MLX generates it")
        return match

    @property
    def kernel(self) -> str:
        return self.name.removeprefix(PREFIX).split("__")[0]

    @cached_property
    def constants(self) -> list[tuple[str, str, str]]:
        """(kind, name, value) of what the kernel is compiled for; THREADS comes last."""
        parameters = [one.split() for one in self.parts["parameters"].split(", ")]
        values = self.parts["arguments"].split(", ")
        return [(kind, name, value) for (kind, name), value in zip(parameters, values, strict=True)]

    @property
    def threads(self) -> int:
        return int(self.constants[-1][2])

    @property
    def family(self) -> str:
        """The name without the number of threads: the same kernel with groups of other sizes."""
        constants = "_".join(value for _, _, value in self.constants)
        any_size = "_".join([*(value for _, _, value in self.constants[:-1]), "*"])
        return self.name.removeprefix(PREFIX).replace(f"__{constants}", f"__{any_size}", 1)


@contextmanager
def dumped(tests: Path) -> Iterator[Path]:
    """A folder with the texts that the C++ test program writes; it is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        dump(tests, Path(folder))
        yield Path(folder)


def dump(tests: Path, folder: Path) -> None:
    subprocess.run([tests, f"--texts={folder}"], check=True)


def read_instances(folder: Path) -> list[Instance]:
    """All texts below the folder, in the order of their names."""
    paths = sorted(folder.rglob("*.metal"), key=lambda path: path.stem)
    return [Instance(path.stem, path.read_text()) for path in paths]


def digests(instances: list[Instance]) -> dict[str, str]:
    """A line of the golden file for each family: group sizes, bytes and a SHA-256 of the texts."""
    families: dict[str, list[Instance]] = {}
    for instance in instances:
        families.setdefault(instance.family, []).append(instance)
    lines = {}
    for family, members in sorted(families.items()):
        members.sort(key=lambda member: -member.threads)
        whole = "".join(member.text for member in members).encode()
        sizes = ",".join(str(member.threads) for member in members)
        lines[family] = f"{sizes}\t{len(whole)}\t{hashlib.sha256(whole).hexdigest()[:16]}"
    return lines
