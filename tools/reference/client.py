"""Asks the PyTorch reference for its outputs, in a process of its own Python."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]


def find_reference() -> str | None:
    """The Python that has the reference: NIGHTINGALE_REFERENCE_PYTHON, else this one, else None."""
    python = os.environ.get("NIGHTINGALE_REFERENCE_PYTHON")
    if python:
        return python
    if importlib.util.find_spec("chatterbox") and importlib.util.find_spec("torch"):
        return sys.executable
    return None


def run_reference(
    jobs: Sequence[dict[str, Any]], timeout: float | None = None, python: str | None = None
) -> dict[str, np.ndarray]:
    """Runs jobs in the reference's Python and returns their arrays as "job name/array name".

    A job is {"name": ..., "kind": a key of jobs.JOBS, and its arguments}; arguments may be numpy
    arrays. python: default: `find_reference()`.
    """
    python = python or find_reference()
    if python is None:
        raise RuntimeError("no reference: set NIGHTINGALE_REFERENCE_PYTHON (see environment.sh)")
    arrays: dict[str, np.ndarray] = {}

    def encode(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            key = str(len(arrays))
            arrays[key] = value
            return {"array": key}
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, Path):
            return str(value.resolve())
        raise TypeError(f"cannot send a {type(value).__name__} to the reference")

    with tempfile.TemporaryDirectory() as folder:
        request, output = Path(folder, "request.json"), Path(folder, "out.npz")
        request.write_text(json.dumps(list(jobs), default=encode))
        np.savez(request.with_suffix(".npz"), **arrays)
        # A relative path is one from here, not from the folder the process starts in.
        python = os.path.abspath(python) if os.sep in python else python
        command = [python, "-m", "tools.reference.jobs", str(request), str(output)]
        done = subprocess.run(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if done.returncode:
            raise RuntimeError(f"the reference failed:\n{done.stderr[-2000:]}")
        with np.load(output) as results:
            return dict(results)
