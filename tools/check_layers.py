"""Checks the direction of dependencies: of includes in csrc, and no circular imports in
python/nightingale.

    python tools/check_layers.py

Prints what is wrong and exits with 1.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTENSION = "nightingale._core"

# What the files of a layer may include of csrc/nightingale, as folders; "." are the headers that
# stand in none. The headers of ops are stricter than its sources, which choose a backend.
LAYERS = {
    "bindings": {".", "engine", "io", "mlx_internals", "models", "ops"},
    "bindings/testing.cpp": {".", "ops", "backends/cpu", "backends/reference"},  # for tests
    "engine": {".", "engine", "models", "ops"},
    "models": {".", "io", "models", "ops"},
    "ops": {".", "ops", "backends", "backends/cpu", "backends/gpu", "backends/reference"},
    "ops headers": {".", "ops"},
    "backends": {".", "ops", "backends", "backends/gpu"},  # test hooks replace the GPU
    "backends/cpu": {".", "ops", "backends", "backends/cpu"},
    "backends/gpu": {
        ".", "ops", "backends", "backends/gpu", "backends/reference", "mlx_internals",
    },
    "backends/reference": {".", "ops", "backends", "backends/reference"},
    "io": {".", "io"},
    "mlx_internals": {".", "mlx_internals"},
    ".": {"."},
}  # fmt: skip
INCLUDE = re.compile(r'^\s*#\s*include\s+"nightingale/([^"]+)"', re.M)


def check_includes(source: Path = ROOT / "csrc") -> list[str]:
    """Includes that point from a layer to one above it, or from a backend to another."""
    problems = []
    for folder in ("bindings", "nightingale"):
        for path in sorted((source / folder).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".inl"):
                continue
            name = path.relative_to(source).as_posix()
            layer = folder if folder == "bindings" else _layer(path.relative_to(source / folder))
            rules = "ops headers" if layer == "ops" and path.suffix != ".cpp" else layer
            allowed = LAYERS.get(name, LAYERS[rules])
            for included in INCLUDE.findall(path.read_text("utf-8")):
                if _layer(Path(included)) not in allowed:
                    problems.append(f"{name} includes nightingale/{included}")
    return problems


def _layer(path: Path) -> str:
    """The folder of LAYERS that holds a file, by its path inside csrc/nightingale."""
    folders = path.parent.parts[: 2 if path.parts[0] == "backends" else 1]
    return "/".join(folders) or "."


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
    problems += [f"upward include: {include}" for include in check_includes()]
    print("\n".join(problems) or "no upward includes, no circular imports")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
