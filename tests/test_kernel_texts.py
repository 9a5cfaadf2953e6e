"""The check of generated Metal texts: what clang accepts and refuses as C++ for OpenCL."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tools.kernel_texts import xcrun
from tools.kernel_texts.__main__ import main, mlx_headers, written
from tools.kernel_texts.instances import Instance, digests
from tools.kernel_texts.opencl import Compiler

CLANG = "clang++-19"
pytestmark = pytest.mark.skipif(not shutil.which(CLANG), reason=f"{CLANG} is not installed")


def instance(body: str, header: str = "", threads: int = 64) -> Instance:
    """`body` as MLX generates a kernel, for bfloat16 and groups of `threads`."""
    name = f"custom_kernel_tiny__bfloat16_t_2_{threads}_bfloat16_t_int32_tc_bfloat16_t"
    call = f"{name}<bfloat16_t, 2, {threads}>"
    text = (
        f"#include <metal_simdgroup_matrix>\n{header}"
        f"template <typename T, int ROWS, int THREADS>\n[[kernel]] void {name}(\n"
        "  const device bfloat16_t* x [[buffer(0)]],\n"
        "  const constant int32_t* count [[buffer(1)]],\n"
        "  device bfloat16_t* y [[buffer(2)]],\n"
        "  uint thread_index_in_threadgroup [[thread_index_in_threadgroup]]) {\n"
        f"{body}\n}}\n\n"
        f'template [[host_name("{name}")]] [[kernel]] decltype({call}) {call};\n'
    )
    return Instance(name, text)


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    return Compiler(CLANG, mlx_headers(), tmp_path_factory.mktemp("opencl"))


def message(compiler: Compiler, body: str, header: str = "") -> str:
    faults = compiler.compile_all([instance(body, header)], 1)
    return "".join(fault.message for fault in faults)


GOOD_HEADER = """
template <typename T> struct Pair {
T a, b;
METAL_FUNC void load(const device T* p) thread { a = p[0]; b = p[1]; }
METAL_FUNC float sum() const thread { return float(a) + float(b); }
};
METAL_FUNC float scaled(thread const float* v, threadgroup float* w) { return v[0] * w[0]; }
"""
GOOD_BODY = """
threadgroup float shared[THREADS];
uint i = thread_index_in_threadgroup;
Pair<T> pair;
pair.load(x + int(i) * ROWS);
shared[i] = pair.sum();
threadgroup_barrier(mem_flags::mem_threadgroup);
float v[1] = {precise::exp(shared[0])};
if (int(i) < count[0]) y[i] = T(scaled(v, shared) + simd_sum(v[0]));
"""


def test_a_correct_kernel_compiles(compiler: Compiler) -> None:
    assert message(compiler, GOOD_BODY, GOOD_HEADER) == ""


# As in attention_out before its fix: a branch that is never taken must compile, and what it writes
# to is of the model's type where an output is left out.
NO_WATCHED_HEADS = """
auto weights = y;
for (int h = 0; h < ROWS - 2; ++h) weights[h] = precise::exp(float(x[h]));
"""
WITHOUT_SPACE = (
    "struct Held { float v; METAL_FUNC void load(const device float* p) { v = *p; } };\n"
)
WITH_BASE = """struct Affine { float scale; };
struct Held : Affine { float bias; };
"""


@pytest.mark.parametrize(
    ("body", "header", "expected"),
    [
        (NO_WATCHED_HEADS, "", "no viable overloaded '='"),
        ("", WITHOUT_SPACE, "the method load has no address space"),
        ("", WITH_BASE, "Affine is a base class"),
        ("half h = float(x[0]); y[0] = T(h);", "", "implicit conversion loses"),
        ("int n = float(x[0]); y[0] = T(n);", "", "implicit conversion turns"),
        ("thread const bfloat16_t* p = x; y[0] = p[0];", "", "cannot initialize a variable"),
        ("y[0] = T(min(count[0], thread_index_in_threadgroup));", "", "ambiguous"),
        ("y[0] = T(exp(1.0));", "", "call to 'exp' is ambiguous"),
        ("y[0] = T(tgamma(1.0f));", "", "undeclared identifier"),
    ],
)
def test_what_metal_refuses_does_not_compile(
    compiler: Compiler, body: str, header: str, expected: str
) -> None:
    assert expected in message(compiler, body, header)


def test_a_fault_names_the_instance_it_is_in(compiler: Compiler) -> None:
    faults = compiler.compile_all(
        [instance(GOOD_BODY, GOOD_HEADER), instance("y[0] = x;", GOOD_HEADER, threads=32)], 1
    )
    assert [fault.kernel for fault in faults] == ["tiny"]
    assert "custom_kernel_tiny__bfloat16_t_2_32_" in faults[0].message
    assert "custom_kernel_tiny__bfloat16_t_2_64_" not in faults[0].message


def test_a_digest_covers_the_group_sizes_of_a_kernel() -> None:
    one = digests([instance(GOOD_BODY), instance(GOOD_BODY, threads=32)])
    other = digests([instance(GOOD_BODY), instance(GOOD_BODY + " ", threads=32)])
    name = "tiny__bfloat16_t_2_*_bfloat16_t_int32_tc_bfloat16_t"
    assert list(one) == list(other) == [name]
    sizes, length, digest = one[name].split("\t")
    assert sizes == "64,32"
    assert int(length) == sum(len(instance(GOOD_BODY, threads=n).text) for n in (64, 32))
    assert digest != other[name].split("\t")[2]


def test_metals_own_compiler_is_asked_for_each_version_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A compiler that knows two versions, and in one of them refuses a word.
    fake = tmp_path / "xcrun"
    fake.write_text(
        "#!/bin/sh\nfor file; do :; done\n"
        'case "$*" in *metal3.[12]*) ;; *) echo unknown version >&2; exit 1 ;; esac\n'
        'case "$*" in *metal3.2*) ! grep -n forbidden "$file" >&2 ;; esac\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    versions = xcrun.known_versions(tmp_path)
    assert versions == ["metal3.1", "metal3.2"]
    texts = [instance("int forbidden = 1;"), instance("int allowed = 1;", threads=32)]
    faults = xcrun.compile_all(texts, versions, mlx_headers(), tmp_path, 2)
    assert [fault.kernel for fault in faults] == [f"{texts[0].name} (metal3.2)"]
    assert "forbidden" in faults[0].message


def test_a_text_of_another_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a text as MLX generates it"):
        _ = Instance("odd", "kernel void odd() {}").parts


def test_texts_that_were_dumped_before_are_read(tmp_path: Path) -> None:
    found = [instance("y[0] = x[0];", threads=threads) for threads in (32, 64)]
    for one in found:
        (tmp_path / f"{one.name}.metal").write_text(one.text)
    assert written(None, tmp_path) == sorted(found, key=lambda one: one.name)


def test_a_dump_needs_the_program_with_the_tests(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["dump", "--dumped", str(tmp_path)])
