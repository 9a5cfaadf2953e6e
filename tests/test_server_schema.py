"""The server keeps to its OpenAPI schema, whatever comes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import httpx
import pytest

pytest.importorskip("fastapi", reason="pip install 'nightingale-tts[server]'")
pytest.importorskip("schemathesis")

from .serving import PATIENCE, serving

pytestmark = pytest.mark.slow

# A schema cannot say which names a voice may have. Starlette's `Allow` tells of one route where two
# have the same path.
EXCLUDED = "positive_data_acceptance,allow_header_conformance"


@pytest.mark.parametrize(
    ("phases", "least"),
    [
        ("examples,fuzzing", 1),
        pytest.param("examples,coverage,fuzzing", 10, marks=pytest.mark.nightly),
    ],
)
def test_schemathesis_finds_nothing(
    phases: str, least: int, quick_checkpoint: Path, tmp_path: Path
) -> None:
    options = [
        "--seed=9", "--max-examples=12", f"--phases={phases}", "--no-color",
        f"--exclude-checks={EXCLUDED}", "--generation-database=none", "--request-timeout=60",
    ]  # fmt: skip
    hooks = {
        "SCHEMATHESIS_HOOKS": "tests.schemathesis_hooks",
        "PYTHONPATH": os.fspath(Path(__file__).parents[1]),
    }
    with serving(quick_checkpoint, tmp_path / "voices", "--strict-model") as server:
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json"]
        pipes = {"capture_output": True, "text": True, "cwd": tmp_path, "timeout": 600}
        found = subprocess.run([*command, *options], **pipes, env=os.environ | hooks)
        counts = httpx.get(f"{server.url}/metrics", timeout=PATIENCE).text
    assert found.returncode == 0, found.stdout + found.stderr
    assert "Traceback" not in "".join(server.log)
    answers: Counter[tuple[str, int]] = Counter()
    pattern = r'^nightingale_requests_total{route="(\S+)",status="(\d+)"} (\S+)$'
    for route, status, count in re.findall(pattern, counts, re.MULTILINE):
        answers[route, int(status)] += round(float(count))
    assert max(status for _, status in answers) < 500
    assert answers["/v1/audio/speech", 200] >= least
    assert answers["/v1/audio/voices", 400] >= least
    assert answers.total() >= 20 * least
