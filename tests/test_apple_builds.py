"""What can be said about builds on Apple machines without one: workflows and SDK guards."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# The first versions that run on Node 24; runners no longer have the one before it.
LEAST_VERSIONS = {"actions/checkout": 5, "actions/setup-python": 6, "actions/upload-artifact": 6}
LEAST_IMAGES = {"macos": 15, "ubuntu": 22}  # GitHub has retired those before


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_use_images_that_exist(path: Path) -> None:
    images = re.findall(r"\b(macos|ubuntu)-(\d+)", path.read_text())
    assert images
    for system, version in images:
        assert int(version) >= LEAST_IMAGES[system], f"{system}-{version}"
    assert "-latest" not in path.read_text()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_actions_that_run_on_todays_node(path: Path) -> None:
    used = re.findall(r"uses: (\S+)@([0-9a-f]{40}) # v(\d+)\.\d+\.\d+$", path.read_text(), re.M)
    assert len(used) == path.read_text().count("uses:")
    for action, _, major in used:
        assert int(major) >= LEAST_VERSIONS[action], f"{action} v{major}"


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("has_macos_15", [False, True])
def test_blas_builds_with_sdks_before_macos_15(tmp_path: Path, has_macos_15: bool) -> None:
    for header in ("Accelerate/Accelerate.h", "nightingale/memory.h"):  # of no interest here
        (tmp_path / header).parent.mkdir()
        (tmp_path / header).write_text("")
    versions = "#define __MAC_14_0 140000\n" + "#define __MAC_15_0 150000\n" * has_macos_15
    (tmp_path / "Availability.h").write_text(versions)
    source = ROOT / "csrc" / "nightingale" / "backends" / "cpu" / "blas.cpp"
    command = ["c++", "-E", "-std=c++20", "-D__APPLE__", f"-I{tmp_path}", f"-I{ROOT / 'csrc'}"]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=True)
    assert ("BLASSetThreading(" in done.stdout) == has_macos_15
