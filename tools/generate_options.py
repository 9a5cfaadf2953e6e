"""Writes what is derived from the options ahead of time: typed overrides, C++ structs, doc tables.

    python tools/generate_options.py [--check]

Run it after a change of python/nightingale/options.py. With --check nothing is written, and the
exit status is 1 where a file is out of date.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
WRITTEN_BY = "Written by tools/generate_options.py from options.py; do not edit."
TABLE = re.compile(r"(<!-- options: (\w+) (\w+)((?: \w+)*) -->\n).*?(<!-- /options -->)", re.DOTALL)
INT_MAX = 2**31 - 1
CPP_TYPES = {"int": "int", "float": "float", "bool": "bool", "str": "std::string"}


def declarations() -> ModuleType:
    """options.py without the rest of the package, which needs to be built."""
    package = ModuleType("nightingale")
    package.__path__ = [str(ROOT / "python" / "nightingale")]
    sys.modules["nightingale"] = package
    return importlib.import_module("nightingale.options")


def overrides(options: ModuleType) -> str:
    """The TypedDicts of the public functions' keywords."""
    lines = [
        f'"""Keyword arguments of the public functions.\n\n{WRITTEN_BY}\n"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import TYPE_CHECKING, TypedDict",
        "",
        "if TYPE_CHECKING:",
        "    from pathlib import Path",
        "",
        "    from .text.lexicon import LexiconSource",
        "    from .voice import Voice",
    ]
    for kind in (options.LoadOptions, options.SpeechOptions):
        name = kind.__name__.replace("Options", "Overrides")
        lines += ["", "", f"class {name}(TypedDict, total=False):"]
        lines += [f"    {each.name}: {' | '.join(each.types)}" for each in options.options_of(kind)]
    speech = {each.name: each for each in options.options_of(options.SpeechOptions)}
    sound, stream = options.conversion_names(), options.conversion_names(chunks=True)
    for name, base, names in (
        ("ConversionOverrides", "TypedDict", sound),
        (
            "ConversionStreamOverrides",
            "ConversionOverrides",
            [each for each in stream if each not in sound],
        ),
    ):
        lines += ["", "", f"class {name}({base}, total=False):"]
        lines += [f"    {each}: {' | '.join(speech[each].types)}" for each in names]
    return "\n".join(lines) + "\n"


def header(options: ModuleType) -> str:
    """The C++ structs."""
    structs = "\n".join(
        struct(kind, [each for each in options.options_of(kind) if each.core])
        for kind in (options.LoadOptions, options.SpeechOptions)
    )
    return f"""// {WRITTEN_BY}
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace nightingale {{

// Which numbers an option takes; without bounds, any.
struct OptionRange {{
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above = false; // `least` itself is refused
}};

{structs}
}} // namespace nightingale
"""


def struct(kind: type, declared: list[Any]) -> str:
    name = kind.__name__
    lines = [*cpp_comment(" ".join(kind.__doc__.split()), ""), f"struct {name} {{"]
    for each in declared:
        kind = cpp_type(each)
        unset = f"; not set: {each.unset}" if "optional" in kind else ""
        lines += cpp_comment(each.help + unset, "  ")
        lines.append(f"  {kind} {each.name}{cpp_default(each)};")
    lines += [
        "",
        "  // Calls visit(name, member, range) for each option.",
        "  template <typename Visit>",
        "  static void each(Visit visit) {",
        "    // clang-format off",
    ]
    lines += [
        f'    visit("{each.name}", &{name}::{each.name}, OptionRange{cpp_range(each)});'
        for each in declared
    ]
    return "\n".join([*lines, "    // clang-format on", "  }", "};", ""])


def cpp_comment(text: str, indent: str) -> list[str]:
    prefix = f"{indent}// "
    return textwrap.wrap(text, 80, initial_indent=prefix, subsequent_indent=prefix)


def cpp_type(option: Any) -> str:
    plain = CPP_TYPES[option.kind]
    if option.kind == "int" and (option.range[1] or 0) >= 2**63:
        plain = "uint64_t"
    # What the model or the voice decides has been resolved before it gets here.
    unset = option.optional and option.fallback is None
    return f"std::optional<{plain}>" if unset else plain


def cpp_default(option: Any) -> str:
    value = option.fallback if option.default is None else option.default
    if value is None:
        return ""
    if option.kind == "float":
        return f" = {float(value)}f"
    return f' = "{value}"' if option.kind == "str" else f" = {str(value).lower()}"


def cpp_range(option: Any) -> str:
    least, most = option.range
    parts = [f".least = {float(least)}"] if least is not None else []
    if most is not None and most != INT_MAX:
        parts.append(f".most = {float(most)}")
    return "{" + ", ".join([*parts, *([".above = true"] if option.above else [])]) + "}"


def with_tables(text: str, options: ModuleType) -> str:
    """A document with the tables of the declarations between its markers,
    <!-- options: CLASS INTERFACE [STAGE]... -->. The interface `python` has all options."""

    def filled(found: re.Match[str]) -> str:
        begin, kind, interface, stages, end = found.groups()
        return begin + "".join(table(options, kind, interface, stages.split())) + end

    return TABLE.sub(filled, text)


def table(options: ModuleType, kind: str, interface: str, stages: list[str]) -> Iterator[str]:
    yield "| option | default | values | |\n|---|---|---|---|\n"
    offered = options.options_of(
        getattr(options, kind), None if interface == "python" else interface
    )
    for each in offered:
        if stages and each.stage not in stages:
            continue
        if interface == "http":
            each = replace(
                each, range=each.http_range or each.range, help=each.by_name or each.help
            )
        name = each.flag if interface == "cli" else each.name
        default = each.default_text if each.default is None else f"`{each.default_text}`"
        yield f"| `{name}` | {default} | {each.values_text} | {each.help} |\n"


def outputs(options: ModuleType) -> dict[Path, str]:
    written = {
        ROOT / "python" / "nightingale" / "_overrides.py": overrides(options),
        ROOT / "csrc" / "include" / "nightingale" / "options.h": header(options),
    }
    for document in sorted((ROOT / "docs").rglob("*.md")):
        text = document.read_text("utf-8")
        if TABLE.search(text):
            written[document] = with_tables(text, options)
    return written


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if out of date"
    )
    check = parser.parse_args().check
    stale = 0
    for path, text in outputs(declarations()).items():
        if path.is_file() and path.read_text("utf-8") == text:
            continue
        stale += 1
        print(f"{path.relative_to(ROOT)} {'is out of date' if check else 'written'}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    if check and stale:
        print("run: python tools/generate_options.py")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
