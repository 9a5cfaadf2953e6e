"""The checks of imports, which find circles wherever the import stands, and of includes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_layers import check_includes, python_cycles


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


@pytest.mark.parametrize(
    ("path", "included", "allowed"),
    [
        ("nightingale/ops/norm.h", "ops/matrix.h", True),
        ("nightingale/ops/norm.h", "error.h", True),
        ("nightingale/ops/norm.h", "backends/cpu/norm.h", False),
        ("nightingale/ops/norm.inl", "backends/gpu/norm.h", False),
        ("nightingale/ops/norm.cpp", "backends/cpu/norm.h", True),
        ("nightingale/ops/norm.cpp", "models/t3/t3.h", False),
        ("nightingale/backends/cpu/norm.cpp", "ops/norm.h", True),
        ("nightingale/backends/cpu/norm.cpp", "backends/gpu/kernel.h", False),
        ("nightingale/backends/cpu/norm.cpp", "backends/reference/ops.h", False),
        ("nightingale/backends/gpu/norm.cpp", "backends/reference/ops.h", True),
        ("nightingale/backends/gpu/mlx/norm.cpp", "backends/cpu/ops.h", False),
        ("nightingale/backends/gpu/norm.cpp", "io/dtype.h", False),
        ("nightingale/models/t3/t3.cpp", "io/tensor_file.h", True),
        ("nightingale/models/t3/t3.cpp", "backends/cpu/threads.h", False),
        ("nightingale/io/weights.h", "ops/matrix.h", False),
        ("nightingale/io/weights.h", "io/dtype.h", True),
        ("bindings/t3.cpp", "models/t3/t3.h", True),
        ("bindings/t3.cpp", "backends/cpu/threads.h", False),
        ("nightingale/error.h", "io/dtype.h", False),
    ],
)
def test_an_include_points_to_a_layer_below(
    tmp_path: Path, path: str, included: str, allowed: bool
) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    file.write_text(f'#include <vector>\n#include "nightingale/{included}"\n')
    expected = [] if allowed else [f"{path} includes nightingale/{included}"]
    assert check_includes(tmp_path) == expected
