"""What package managers are given: recipes, the container's files and the wheel."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile
from huggingface_hub import ModelCard

from nightingale.checkpoint import EMBEDDED, find_checkpoint
from tools.fill_recipes import fill
from tools.run_dockerfile import DOCKERFILE, instructions

from .command import PATIENCE

ROOT = Path(__file__).parents[1]
PACKAGING = ROOT / "packaging"
PASSED_ON = ("PIP_", "UV_", "SSL_", "http", "HTTP")  # how PyPI is reached
PYPROJECT = (ROOT / "pyproject.toml").read_text("utf-8")
VERSION = re.search(r'^version = "(.+)"$', PYPROJECT, re.MULTILINE)[1]


def test_recipes_have_the_version_of_the_package() -> None:
    formula = (PACKAGING / "homebrew" / "nightingale-tts.rb").read_text()
    assert f"/nightingale_tts-{VERSION}.tar.gz" in formula
    assert f'version: "{VERSION}"' in (PACKAGING / "conda" / "recipe.yaml").read_text()


def test_wheels_are_tested_with_the_fast_tests_only() -> None:
    """Five Pythons take turns in the time of one job."""
    command = re.search(r"^test-command = '(.+)'$", PYPROJECT, re.MULTILINE)[1]
    program, option, chosen, folder = shlex.split(command)
    assert (program, option, folder) == ("pytest", "-m", "{project}/tests")
    marks = set(re.findall(r'^  "(\w+): ', PYPROJECT, re.MULTILINE))
    assert marks == {"full_size", "cluster", "alone", "nightly", "slow"}
    # Full size is what --full asks for.
    assert set(chosen.split(" and ")) == {f"not {mark}" for mark in marks - {"full_size"}}


def test_a_release_is_filled_into_the_recipes(tmp_path: Path) -> None:
    folder = tmp_path / "packaging"
    shutil.copytree(PACKAGING, folder)
    sdist = tmp_path / "nightingale_tts-9.8.7.tar.gz"
    sdist.write_bytes(b"some bytes")
    formula, recipe = (path.read_text() for path in fill(sdist, folder))
    digest = hashlib.sha256(b"some bytes").hexdigest()
    assert f'/nightingale_tts-9.8.7.tar.gz"\n  sha256 "{digest}"\n' in formula
    assert 'version: "9.8.7"' in recipe
    assert f'sha256: "{digest}"' in recipe
    with pytest.raises(SystemExit, match="not named"):
        fill(tmp_path / "other-1.0.tar.gz", folder)


def test_the_image_runs_without_root_and_is_checked() -> None:
    steps = list(instructions(DOCKERFILE.read_text("utf-8")))
    last = steps[max(i for i, (name, _) in enumerate(steps) if name == "FROM") :]
    found = dict(last)
    assert found["USER"].isdecimal()
    assert int(found["USER"]) > 0
    health = json.loads(found["HEALTHCHECK"].partition("CMD ")[2])
    assert "/health" in health[-1]
    assert json.loads(found["ENTRYPOINT"]) == ["nightingale"]
    assert json.loads(found["CMD"])[0] == "serve"


def test_the_card_of_the_embedded_voice_has_the_fields_of_the_hub() -> None:
    data = ModelCard.load(EMBEDDED / "MODEL_CARD.md").data
    assert (data.license, data.pipeline_tag) == ("mit", "text-to-speech")
    assert data.library_name == "nightingale-tts"
    assert data.language == list(find_checkpoint(EMBEDDED).languages)


@pytest.mark.nightly
def test_a_wheel_speaks_with_uvx_in_a_fresh_environment(tmp_path: Path) -> None:
    """NIGHTINGALE_WHEEL names the wheel, as .ci/nightly package builds it."""
    uvx, wheel = shutil.which("uvx"), os.environ.get("NIGHTINGALE_WHEEL")
    if uvx is None or wheel is None:
        pytest.skip("needs uvx, and NIGHTINGALE_WHEEL, the path of a wheel")
    fresh = {"HOME": str(tmp_path), "PATH": os.defpath, "UV_CACHE_DIR": str(tmp_path / "cache")}
    kept = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    subprocess.run(
        [uvx, "--python", sys.executable, "--from", wheel, "nightingale", "say", "Hello", "there.",
         "-o", "hello.wav"],
        cwd=tmp_path, env=kept | fresh, check=True, timeout=2 * PATIENCE,
    )  # fmt: skip
    assert soundfile.info(tmp_path / "hello.wav").duration > 0.5
