"""Breaks the kernels of metal/ one place at a time and sees whether their tests notice.

Removes each barrier, shifts each index by one either way, drops each address space, and runs the
test cases that launch the kernel in the emulator. Says for every mutant what caught it.

    python3 csrc/tests/mutate_kernels.py build/csrc/tests/nightingale_tests [--every 20]

The exit status is 1 where fewer than 90 % of the barriers are caught.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import dataclasses
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

METAL = pathlib.Path(__file__).resolve().parents[2] / "metal"
NOT_KERNELS = {"cuda.h", "metal.h", "metal_tiles.h"}
SPACES = {"device", "threadgroup", "constant", "thread"}
LEAST_BARRIERS = 0.9
QUICK_SECONDS = 1.0  # of tests that every mutant meets first

# What the emulator's messages begin with, by what we call it.
CATCHES = {
    "compile": r"not MSL:|does not compile:",
    "race": r"race:",
    "bounds": r"out of bounds:",
    "divergence": r"divergent ",
    "unwritten": r"unwritten:",
    "undefined": r"misaligned:|undefined:|read-only:|SIMD operation:",
}

TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\#[^\n]*          # left out
    |(?P<token>\w+|<<=|>>=|[-+*/%&|^=!<>]=|&&|\|\||\+\+|--|::|->|[^\s\w])""",
    re.VERBOSE | re.DOTALL,
)


@dataclasses.dataclass(frozen=True)
class Mutant:
    file: str
    kind: str  # barrier, index, space
    change: str
    begin: int
    end: int
    text: str

    def of(self, source: str) -> str:
        return source[: self.begin] + self.text + source[self.end :]


@dataclasses.dataclass
class Outcome:
    mutant: Mutant
    line: int
    code: str
    caught: str  # by what, or ""


class Tests:
    """Which test cases launch which kernel: by a log of theirs, or by one run of them all."""

    def __init__(self, binary: str, cache: pathlib.Path, launched: pathlib.Path | None) -> None:
        self.binary, self.cache = binary, cache
        self.by_kernel: dict[str, list[tuple[float, str]]] = collections.defaultdict(list)
        self.sound: set[str] = set()  # kernels whose tests pass as long as nothing is broken
        self.lock = threading.Lock()
        if launched is None:
            launched = cache / "launched.tsv"
            arguments = ["-sf=*/backends/gpu/*", f"--launched={launched}"]
            status, output = self.run(arguments, METAL, timeout=1200)
            if status != 0:
                sys.exit("The tests fail before anything is broken:\n" + output[-3000:])
        for line in launched.read_text().splitlines():
            kernel, name, seconds, file = line.split("\t")
            if "/backends/gpu/" in file:
                self.by_kernel[kernel].append((float(seconds), name))
        for tests in self.by_kernel.values():
            tests.sort()

    def run(self, arguments: list[str], metal: pathlib.Path, timeout: float) -> tuple[int, str]:
        command = [self.binary, f"--metal={metal}", f"--cache={self.cache}", *arguments]
        try:
            done = subprocess.run(command, capture_output=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return -1, "does not end"
        return done.returncode, (done.stdout + done.stderr).decode(errors="replace")

    def catch(self, kernel: str, metal: pathlib.Path) -> str:
        """What catches the kernel in `metal`, or nothing: the quick tests first, then all."""
        quick, rest = self.tests_of(kernel)
        with self.lock:
            if quick and kernel not in self.sound:
                self.sound.add(kernel)
                status, output = self.run_tests(quick, METAL)
                if status != 0:
                    sys.exit(f"The tests of {kernel} fail before it is broken:\n{output[-3000:]}")
        for tests in filter(None, (quick, rest)):
            status, output = self.run_tests(tests, metal)
            if status != 0:
                return caught_by(output)
        return ""

    def tests_of(self, kernel: str) -> tuple[list[tuple[float, str]], list[tuple[float, str]]]:
        tests = self.by_kernel[kernel]
        count, spent = 0, 0.0
        for seconds, _ in tests:
            if count and spent + seconds > QUICK_SECONDS:
                break
            count += 1
            spent += seconds
        return tests[:count], tests[count:]

    def run_tests(self, tests: list[tuple[float, str]], metal: pathlib.Path) -> tuple[int, str]:
        filters = ",".join(re.sub(r"([\\,])", r"\\\1", name) for _, name in tests)
        limit = 60 + 10 * sum(seconds for seconds, _ in tests)
        return self.run([f"-tc={filters}", "-aa=1"], metal, limit)


def caught_by(output: str) -> str:
    if output == "does not end":
        return "hang"
    for what, message in CATCHES.items():
        if re.search(message, output):
            return what
    return "crash" if "CRASHED" in output else "result"


def tokens(source: str) -> list[re.Match]:
    return [m for m in TOKEN.finditer(source) if m["token"]]


def closing(found: list[re.Match], i: int) -> int:
    depth = 0
    while True:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(found[i]["token"], 0)
        if depth == 0:
            return i
        i += 1


def is_name(text: str) -> bool:
    return text.isidentifier() and text not in {"return", "else", "case"}


def without_arguments(words: list[str]) -> list[str]:
    """A statement's words without the template arguments of the type it begins with."""
    if words[1:2] == ["<"] and ">" in words:
        return [words[0], *words[words.index(">") + 1 :]]
    return words


def extents(found: list[re.Match], body_begins: int) -> set[int]:
    """The brackets that say how large an array is, which are no indices."""
    sizes: set[int] = set()
    ends: set[int] = set()
    start, braces = 0, 0
    for i, match in enumerate(found):
        text = match["token"]
        braces += (text == "{") - (text == "}")
        if text in {";", "{", "}"} or (text == "(" and found[i - 1]["token"] == "for"):
            start = i + 1
        if text != "[":
            continue
        in_signature = braces == 0 and match.start() < body_begins
        before = without_arguments([m["token"] for m in found[start:i]])
        declares = len(before) > 1 and is_name(before[0]) and is_name(before[1])
        declares = declares or before[:1] == ["using"]
        depth, assigned = 0, False
        for word in before:
            depth += (word in "([") - (word in ")]")
            if depth == 0 and word in {"=", ","}:
                assigned = word == "="
        last = [m["token"] for m in found[max(i - 5, 0) : i]]  # float (*name)
        to_array = last[1:3] == ["(", "*"] and last[4:] == [")"] and is_name(last[0])
        declares = declares and not assigned and depth == 0
        if in_signature or declares or to_array or i - 1 in ends:
            sizes.add(i)
            ends.add(closing(found, i))
    return sizes


def mutants(file: str, source: str) -> list[Mutant]:
    found = tokens(source)
    split = source.find("//: kernel")
    sizes = extents(found, split if split >= 0 else len(source))
    made = []
    for i, match in enumerate(found):
        text = match["token"]
        if text in {"threadgroup_barrier", "simdgroup_barrier"}:
            end = found[closing(found, i + 1)].end()
            made.append(Mutant(file, "barrier", "removed", match.start(), end, ""))
        elif text in SPACES:
            made.append(Mutant(file, "space", f"{text} dropped", match.start(), match.end(), ""))
        elif text == "[" and i not in sizes:
            begin, end = match.end(), found[closing(found, i)].start()
            index = source[begin:end]
            for shift in ("+ 1", "- 1"):
                made.append(Mutant(file, "index", shift, begin, end, f"({index}) {shift}"))
    return made


def kernels_with(file: str) -> list[str]:
    """The kernels that a file is part of."""
    if file.endswith(".metal"):
        return [file.removesuffix(".metal")]
    includes = {
        path.name: re.findall(r'^#include "(.*)"', path.read_text(), re.MULTILINE)
        for path in METAL.iterdir()
    }

    def reaches(name: str) -> bool:
        return file in includes[name] or any(reaches(more) for more in includes[name])

    return sorted(
        name.removesuffix(".metal")
        for name in includes
        if name.endswith(".metal") and reaches(name)
    )


def try_out(mutant: Mutant, tests: Tests) -> Outcome:
    source = (METAL / mutant.file).read_text()
    with tempfile.TemporaryDirectory() as folder:
        metal = pathlib.Path(folder) / "metal"
        shutil.copytree(METAL, metal)
        (metal / mutant.file).write_text(mutant.of(source))
        caught = ""
        for kernel in kernels_with(mutant.file):
            caught = caught or tests.catch(kernel, metal)
    line = source.count("\n", 0, mutant.begin)
    return Outcome(mutant, line + 1, source.splitlines()[line].strip(), caught)


def share(outcomes: list[Outcome]) -> str:
    caught = sum(bool(outcome.caught) for outcome in outcomes)
    return f"{caught} of {len(outcomes)}" if outcomes else ""


def table(outcomes: list[Outcome]) -> str:
    """The catches by file and by what caught them, and every mutant that lives."""
    kinds = {"barrier": "barriers removed", "index": "indices shifted", "space": "spaces dropped"}
    lines = ["| file | " + " | ".join(kinds.values()) + " |", "|---" * 4 + "|"]
    files = sorted({outcome.mutant.file for outcome in outcomes})
    for file in [*files, None]:
        row = [
            share([o for o in outcomes if o.mutant.kind == kind and file in (None, o.mutant.file)])
            for kind in kinds
        ]
        lines.append(f"| {file or 'all'} | " + " | ".join(row) + " |")
    counts = collections.Counter((o.mutant.kind, o.caught or "nothing") for o in outcomes)
    catches = sorted({caught for _, caught in counts}, key=lambda c: (c == "nothing", c))
    lines += ["", "| caught by | " + " | ".join(kinds.values()) + " |", "|---" * 4 + "|"]
    for caught in catches:
        row = [str(counts[kind, caught] or "") for kind in kinds]
        lines.append(f"| {caught} | " + " | ".join(row) + " |")
    alive = [outcome for outcome in outcomes if not outcome.caught]
    if alive:
        lines += ["", "| lives on | change | line |", "|---|---|---|"]
    for o in alive:
        code = o.code.replace("|", "\\|")
        lines.append(f"| {o.mutant.file}:{o.line} | {o.mutant.kind} {o.mutant.change} | `{code}` |")
    return "\n".join(lines) + "\n"


def listing(outcomes: list[Outcome]) -> str:
    rows = ["file\tline\tkind\tchange\tcaught by\tcode"]
    for o in outcomes:
        rows.append(
            f"{o.mutant.file}\t{o.line}\t{o.mutant.kind}\t{o.mutant.change}\t{o.caught}\t{o.code}"
        )
    return "\n".join(rows) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", help="nightingale_tests")
    parser.add_argument(
        "--every", type=int, default=1, help="take one of so many mutants, and all barriers"
    )
    parser.add_argument("--only", nargs="+", metavar="FILE", help="files of metal/, not all")
    parser.add_argument("--kinds", default="barrier,index,space")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--part", default="1/1", metavar="K/N", help="take the K-th of N parts of the mutants"
    )
    parser.add_argument(
        "--launched", type=pathlib.Path, help="what a passing run of the tests wrote, to save one"
    )
    parser.add_argument("--table", type=pathlib.Path, help="write the tables here, as Markdown")
    parser.add_argument("--list", type=pathlib.Path, help="write every mutant here, tab-separated")
    arguments = parser.parse_args()

    started = time.monotonic()
    chosen = []
    for path in sorted(METAL.iterdir()):
        if path.name in (arguments.only or {path.name} - NOT_KERNELS):
            made = mutants(path.name, path.read_text())
            chosen += [m for m in made if m.kind in arguments.kinds.split(",")]
    barriers = [m for m in chosen if m.kind == "barrier"]
    others = sorted((m for m in chosen if m.kind != "barrier"), key=lambda m: m.change)
    chosen = barriers + others[:: arguments.every]
    part, parts = map(int, arguments.part.split("/"))
    chosen = chosen[part - 1 :: parts]
    with tempfile.TemporaryDirectory() as folder:
        tests = Tests(arguments.binary, pathlib.Path(folder), arguments.launched)
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            outcomes = list(pool.map(lambda m: try_out(m, tests), chosen))
    outcomes.sort(key=lambda o: (o.mutant.file, o.line, o.mutant.begin))

    print(table(outcomes))
    print(f"{len(outcomes)} mutants, {time.monotonic() - started:.0f} s")
    if arguments.table:
        arguments.table.write_text(table(outcomes))
    if arguments.list:
        arguments.list.write_text(listing(outcomes))
    barriers = [o for o in outcomes if o.mutant.kind == "barrier"]
    caught = sum(bool(o.caught) for o in barriers)
    return int(caught < LEAST_BARRIERS * len(barriers))


if __name__ == "__main__":
    sys.exit(main())
