"""What MLX compiles on Metal for every kernel of every model, without a Mac.

python3 -m tools.kernel_texts COMMAND --tests build/csrc/tests/nightingale_tests

check      compares the texts with their digests in golden.tsv and compiles them with clang
refresh    writes golden.tsv
dump       writes the texts to --folder
metal      compiles them with Xcode's compiler, for each version of the language
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from . import xcrun
from .instances import Instance, digests, dump, dumped, read_instances
from .opencl import Compiler, Fault

GOLDEN = Path(__file__).parent / "golden.tsv"
# Launched for several utterances together only, of which the models' texts have none: --also
# compiles those that tests write.
OF_SEVERAL = {"join_inputs"}
KERNELS = Path(__file__).parents[2] / "metal"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="tools.kernel_texts", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("command", choices=("check", "refresh", "dump", "metal"))
    texts = parser.add_mutually_exclusive_group(required=True)
    texts.add_argument("--tests", type=Path, help="the program with the C++ tests")
    texts.add_argument("--dumped", type=Path, help="a folder that dump has written before")
    parser.add_argument("--folder", type=Path, default=Path("kernel-texts"), help="where to dump")
    parser.add_argument(
        "--also", type=Path, help="a folder of texts that check compiles too, as tests write them"
    )
    parser.add_argument("--clang", default="clang++-19")
    parser.add_argument("--mlx", type=Path, help="MLX's headers; those of the package without")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args(argv)
    if args.command == "dump":
        if args.dumped:
            parser.error("dump needs --tests")
        dump(args.tests, args.folder)
        describe(read_instances(args.folder))
        return 0
    instances = written(args.tests, args.dumped)
    describe(instances)
    if args.command == "refresh":
        GOLDEN.write_text(golden_text(instances))
        return 0
    if args.command == "metal":
        return compile_for_metal(instances, args)
    different = compare(instances)
    if args.also:
        instances = distinct([*instances, *read_instances(args.also)])
    return different | compile_all(instances, args)


def written(tests: Path | None, before: Path | None) -> list[Instance]:
    """The texts of a folder, or those that the test program writes now."""
    if before:
        return read_instances(before)
    assert tests
    with dumped(tests) as folder:
        return read_instances(folder)


def distinct(instances: list[Instance]) -> list[Instance]:
    return list({(one.name, one.text): one for one in instances}.values())


def describe(instances: list[Instance]) -> None:
    """Prints how many instances each kernel has and how long their texts are."""
    counts = Counter(instance.kernel for instance in instances)
    for kernel in sorted(counts):
        sizes = [len(one.text) for one in instances if one.kernel == kernel]
        average = sum(sizes) / len(sizes) / 1000
        print(f"{kernel:20} {counts[kernel]:5} instances of {average:5.1f} kB")
    total = sum(len(instance.text) for instance in instances)
    print(f"{len(counts)} kernels, {len(instances)} instances, {total / 1e6:.1f} MB")


def golden_text(instances: list[Instance]) -> str:
    return "".join(f"{name}\t{line}\n" for name, line in digests(instances).items())


def compare(instances: list[Instance]) -> int:
    """1 if a text is not as golden.tsv has it, or a kernel of metal/ is in none."""
    expected = dict(line.split("\t", 1) for line in GOLDEN.read_text().splitlines())
    found = digests(instances)
    wrong = [f"{name}: no longer launched" for name in expected if name not in found]
    wrong += [f"{name}: new" for name in found if name not in expected]
    wrong += [
        f"{name}: {line.replace(chr(9), ' ')}, golden.tsv has {expected[name].replace(chr(9), ' ')}"
        for name, line in found.items()
        if expected.get(name, line) != line
    ]
    launched = {instance.kernel for instance in instances}
    known = launched | OF_SEVERAL
    never = [path.stem for path in KERNELS.glob("*.metal") if path.stem not in known]
    wrong += [f"{kernel}: no model launches it" for kernel in never]
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        print("to accept them: python3 -m tools.kernel_texts refresh --tests ...", file=sys.stderr)
    return int(bool(wrong))


def mlx_headers() -> Path:
    package = importlib.util.find_spec("mlx")
    if not package or not package.submodule_search_locations:
        raise SystemExit("MLX is not installed; give its headers with --mlx")
    return Path(next(iter(package.submodule_search_locations))) / "include"


def compile_all(instances: list[Instance], args: argparse.Namespace) -> int:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(args.clang, args.mlx or mlx_headers(), Path(folder))
        faults = compiler.compile_all(instances, args.jobs)
    return report(instances, args.clang, faults, started)


def compile_for_metal(instances: list[Instance], args: argparse.Namespace) -> int:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        versions = xcrun.known_versions(Path(folder))
        if not versions:
            print("xcrun metal compiles nothing: is Xcode installed?", file=sys.stderr)
            return 1
        faults = xcrun.compile_all(
            instances, versions, args.mlx or mlx_headers(), Path(folder), args.jobs
        )
    return report(instances, f"xcrun metal for {', '.join(versions)}", faults, started)


def report(instances: list[Instance], compiler: str, faults: list[Fault], started: float) -> int:
    for fault in faults:
        print(f"{fault.kernel} does not compile:\n{fault.message}", file=sys.stderr)
    took = time.monotonic() - started
    print(f"{len(instances)} instances compiled by {compiler}, {len(faults)} faults, {took:.0f} s")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
