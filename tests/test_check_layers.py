"""The check of imports finds circles, wherever the import stands."""

from __future__ import annotations

from pathlib import Path

from tools.check_layers import python_cycles


def write(folder: Path, **modules: str) -> Path:
    (folder / "p" / "q").mkdir(parents=True)
    (folder / "p" / "__init__.py").write_text("")
    (folder / "p" / "q" / "__init__.py").write_text("from .inner import x\n")
    for name, text in modules.items():
        (folder / "p" / f"{name.replace('__', '/')}.py").write_text(text)
    return folder


def test_a_circle_is_found_also_inside_a_function(tmp_path: Path) -> None:
    lazy = "def f():\n    from .a import x\n"
    folder = write(tmp_path, a="from .b import f\n", b=lazy, q__inner="x = 1\n")
    assert python_cycles(folder) == ["p.a imports p.b imports p.a"]


def test_a_circle_through_a_package_is_found(tmp_path: Path) -> None:
    folder = write(tmp_path, a="from .q import x\n", q__inner="from ..a import x\n")
    assert python_cycles(folder) == ["p.a imports p.q imports p.q.inner imports p.a"]


def test_imports_for_type_checkers_do_not_count(tmp_path: Path) -> None:
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import x\n"
    folder = write(tmp_path, a="from .b import f\nfrom p.q.inner import x\n", b=typed, q__inner="")
    assert python_cycles(folder) == []
