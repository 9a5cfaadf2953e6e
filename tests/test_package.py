"""The package as it is installed: light to import, one with MLX, typed."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path

import mlx.core as mx
import pytest

import nightingale
from nightingale import _core
from nightingale.checkpoint import embedded_model, find_checkpoint
from tools.generate_stubs import stub

from .command import PATIENCE

DISTRIBUTION = "nightingale-tts"


def output_of(program: str, *args: str | Path) -> str:
    command = [sys.executable, "-c", program, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    return done.stdout.strip()


def test_importing_loads_nothing_that_a_later_call_can() -> None:
    program = "import sys, nightingale; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = set(output_of(program).split())
    assert "nightingale" in loaded
    late = {"tokenizers", "huggingface_hub", "soundfile", "soxr", "tqdm"}
    late |= {"pykakasi", "spacy_pkuseg", "dicta_onnx", "russian_text_stresser"}
    assert loaded & (late | {"torch", "librosa", "safetensors"}) == set()


SPEAK = """
import sys, nightingale
print(*nightingale.load(sys.argv[1]).speech_tokens("Hello.", max_tokens=3))
print(*{name.split('.')[0] for name in sys.modules})
"""


def test_a_local_model_needs_neither_torch_nor_the_hub(checkpoint: Path) -> None:
    tokens, loaded = (set(line.split()) for line in output_of(SPEAK, checkpoint).splitlines())
    assert len(tokens) == 3
    assert "tokenizers" in loaded
    unneeded = {"torch", "librosa", "safetensors", "huggingface_hub", "soundfile", "soxr"}
    assert loaded & unneeded == set()


def test_arrays_of_mlx_pass_into_the_core_and_out_of_it() -> None:
    token = _core.ops.draw_token(mx.array([0.0, 500.0, 1.0]), 0, 0, 0)
    assert type(token) is mx.array
    assert (token + 1).tolist() == [2]


NANOBIND_DOMAINS = """
import ctypes, importlib, sys

api = ctypes.pythonapi
api.PyInterpreterState_Get.restype = ctypes.c_void_p
api.PyInterpreterState_GetDict.argtypes = [ctypes.c_void_p]
api.PyInterpreterState_GetDict.restype = ctypes.c_void_p  # a borrowed reference
address = api.PyInterpreterState_GetDict(api.PyInterpreterState_Get())
state = ctypes.cast(address, ctypes.py_object).value
for name in sys.argv[1:]:
    importlib.import_module(name)
    print(*sorted(key for key in state if str(key).startswith("__nb_internals_")))
"""


@pytest.mark.parametrize(
    "modules", [["mlx.core", "nightingale._core"], ["nightingale._core", "mlx.core"]]
)
def test_the_core_and_mlx_share_one_nanobind_domain(modules: list[str]) -> None:
    """nanobind keeps one record for each ABI and domain: a second one would mean two worlds."""
    first, second = output_of(NANOBIND_DOMAINS, *modules).splitlines()
    assert re.fullmatch(r"__nb_internals_\S+_mlx__", first)
    assert second == first


def test_both_libraries_were_built_with_the_same_nanobind_abi() -> None:
    tags = [
        set(re.findall(rb"nanobind_\w+_v\d+", Path(module.__file__).read_bytes()))
        for module in (_core, mx)
    ]
    assert len(tags[0]) == 1
    assert tags[0] == tags[1]


def test_mlx_is_the_version_the_package_was_built_for() -> None:
    pins = {
        re.sub(r"[\s;].*", "", line.split("==")[1])
        for line in metadata.requires(DISTRIBUTION)
        if re.match(r"mlx(\[\w+\])?==", line)
    }
    assert pins == {_core.mlx_version()}
    assert pins == {metadata.version("mlx")}


def test_the_public_names() -> None:
    results = ["Audio", "Chunk", "Error", "IgnoredOptionWarning", "Lexicon", "LoadOptions"]
    results += ["SpeechOptions", "UnspokenWarning", "Voice", "Word"]
    assert nightingale.__all__ == ["TTS", *results, "__version__", "load", "normalize"]
    assert issubclass(nightingale.Error, Exception)
    assert nightingale.Error is _core.Error


def test_the_package_is_installed_typed_and_versioned() -> None:
    assert (resources.files("nightingale") / "py.typed").is_file()
    assert re.fullmatch(r"\d+\.\d+\.\d+", metadata.version(DISTRIBUTION))
    scripts = {
        entry.name: entry.value
        for entry in metadata.distribution(DISTRIBUTION).entry_points
        if entry.group == "console_scripts"
    }
    assert scripts == {
        "nightingale": "nightingale.cli:main",
        "sd_nightingale": "nightingale.speech_dispatcher:main",
    }


def test_the_licence_and_the_notices_are_installed() -> None:
    try:
        files = metadata.files(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        pytest.skip("nothing is installed: the package is imported from its sources")
    texts = {file.name: file.read_text() for file in files if file.parent.name == "licenses"}
    assert texts.keys() == {"LICENSE", "THIRD_PARTY_NOTICES.md"}
    assert texts["LICENSE"].startswith("MIT License\n")
    for name in ("nanobind", "robin-map", "MLX", "Kokoro-82M", "Chatterbox"):
        assert name in texts["THIRD_PARTY_NOTICES.md"]
    for line in metadata.requires(DISTRIBUTION):
        if "extra ==" not in line:
            assert re.match(r"[\w-]+", line)[0] in texts["THIRD_PARTY_NOTICES.md"]


VERSION = """
import nightingale
from nightingale import __version__
print(__version__, nightingale.__version__)
"""


def test_the_version_is_that_of_the_installed_distribution() -> None:
    version = metadata.version(DISTRIBUTION)
    assert output_of(VERSION) == f"{version} {version}"
    assert "__version__" not in vars(nightingale)
    with pytest.raises(AttributeError, match="no attribute '__versions__'"):
        _ = nightingale.__versions__


def test_the_types_of_the_core_are_those_it_has() -> None:
    installed = resources.files("nightingale") / "_core.pyi"
    assert installed.read_text("utf-8") == stub()


def test_the_package_carries_a_model() -> None:
    folder = embedded_model()
    assert folder is not None
    assert folder.parent == Path(nightingale.__file__).parent
    assert find_checkpoint(folder).voices


def test_torch_and_librosa_are_never_required() -> None:
    always = [line for line in metadata.requires(DISTRIBUTION) if "extra ==" not in line]
    needed = {re.match(r"[\w.-]+", line)[0] for line in always}
    assert {"mlx", "numpy", "tokenizers"} <= needed
    assert needed & {"torch", "librosa", "safetensors"} == set()


def test_the_hooks_have_the_versions_of_the_linters() -> None:
    root = Path(__file__).parents[1]
    pinned = r"[\w-]+==[\d.]+"
    hooks = set(re.findall(pinned, (root / ".pre-commit-config.yaml").read_text("utf-8")))
    linters = re.findall(pinned, (root / "tools" / "lint_requirements.txt").read_text("utf-8"))
    assert hooks
    assert hooks <= set(linters)
