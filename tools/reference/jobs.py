"""Runs jobs of the PyTorch reference for a process of another Python (see client.py).

python -m tools.reference.jobs REQUEST.json OUT.npz
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Before the imports: the tokenizer would look for its Cangjie table online, T3 draws a bar a call.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")

import numpy as np

from . import conversion, s3gen, t3, text, turbo, voice
from .tensors import Arrays

JOBS = t3.JOBS | s3gen.JOBS | text.JOBS | turbo.JOBS | voice.JOBS | conversion.JOBS


def load_request(path: str | Path) -> list[dict[str, Any]]:
    """Reads the jobs, with the arrays they name from the .npz beside the JSON."""
    path = Path(path)
    with np.load(path.with_suffix(".npz")) as arrays:
        return json.loads(
            path.read_text(),
            object_hook=lambda item: arrays[item["array"]] if set(item) == {"array"} else item,
        )


def run_jobs(jobs: Sequence[dict[str, Any]]) -> Arrays:
    """Every job's arrays as "job name/array name"."""
    results: Arrays = {}
    for job in jobs:
        arguments = {key: value for key, value in job.items() if key not in ("name", "kind")}
        if job["kind"] not in JOBS:
            raise ValueError(f"job kind {job['kind']!r}, expected one of {', '.join(JOBS)}")
        outputs = JOBS[job["kind"]](**arguments)
        results |= {f"{job['name']}/{key}": value for key, value in outputs.items()}
    return results


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit("usage: tools.reference.jobs REQUEST.json OUT.npz")
    np.savez(sys.argv[2], **run_jobs(load_request(sys.argv[1])))


if __name__ == "__main__":
    main()
