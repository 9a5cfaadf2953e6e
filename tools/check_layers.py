"""Checks the direction of dependencies: no circular imports in python/nightingale.

    python tools/check_layers.py

Prints what is wrong and exits with 1.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTENSION = "nightingale._core"


def python_cycles(source: Path = ROOT / "python") -> list[str]:
    """Circles of modules that import each other, also inside functions; imports for type checkers
    do not count."""
    modules = {_module_name(path, source): path for path in source.rglob("*.py")}
    imports = {name: _imports(name, path, modules) for name, path in modules.items()}
    cycles: list[str] = []
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> None:
        if name in trail:
            cycles.append(" imports ".join([*trail[trail.index(name) :], name]))
        elif name not in done:
            for imported in sorted(imports[name]):
                visit(imported, [*trail, name])
            done.add(name)

    for name in sorted(modules):
        visit(name, [])
    return cycles


def _module_name(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(name: str, path: Path, modules: dict[str, Path]) -> set[str]:
    """The modules of ours that a module imports."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found: set[str] = set()
    for node in _statements(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            origin = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            for alias in node.names:
                imported = f"{origin}.{alias.name}"
                if imported != EXTENSION:
                    found.add(imported if imported in modules else origin)
    return (found & modules.keys()) - {name}


def _statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Import statements, but for those under `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        yield from _statements(child)


def main() -> int:
    problems = [f"circular import: {cycle}" for cycle in python_cycles()]
    print("\n".join(problems) or "no circular imports")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
