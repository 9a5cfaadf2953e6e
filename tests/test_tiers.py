"""Which tests a choice by marks leaves out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NIGHTLY, CLUSTER = "tests/test_text_random.py", "tests/test_batch.py"


@pytest.mark.slow
def test_nightly_tests_and_those_of_a_cluster_are_slow() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-m", "not slow", NIGHTLY, CLUSTER]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_three_thousand_random_strings" in done.stdout
    assert "test_a_hundred_thousand_random_strings" not in done.stdout
    assert CLUSTER not in done.stdout
