"""`batch`: a manifest of texts to files, on all cores or on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..options import SpeechOptions
from .options import Arguments, add_shared, at_least, on_terminal, progress_bar, remark


def add_commands(commands: Any) -> None:
    batch = commands.add_parser("batch", help="speak the lines of a manifest to files, with Ray")
    batch.add_argument(
        "manifest",
        type=Path,
        metavar="MANIFEST",
        help='lines of JSON: {"text": "Hello.", "output": "hello.mp3", "seed": 7}; only the text '
        "must be there",
    )
    batch.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FOLDER",
        required=True,
        help="for the files and results.jsonl; what is done there is not done again",
    )
    batch.add_argument(
        "--workers", type=int, default=1, help="that each load the model (default: 1)"
    )
    batch.add_argument(
        "--address", help="of a Ray cluster, or auto (default: one of its own, for this run)"
    )
    add_shared(batch, json=None, speech=True)
    batch.set_defaults(run=_batch)


def _batch(args: Arguments) -> int:
    from ..batch import Journal, locked, speak_lines
    from ..batch_requests import Requests
    from ..manifest import ManifestError, read_manifest

    at_least(1, "workers", args.workers)
    checkpoint = args.find_checkpoint()
    loading = args.load_options()
    requests = Requests(checkpoint, loading, args.given(SpeechOptions))
    try:
        lines = read_manifest(args.manifest, requests.check)
    except ManifestError as error:
        for problem in error.problems:
            remark(f"nightingale: {problem}")
        raise
    # On a cluster each machine looks up a hub's id and has its own embedded model; a folder must be
    # there on all of them.
    by_name = args.address is not None and not (args.model and Path(args.model).is_dir())
    model = args.model if by_name else str(checkpoint.folder.resolve())
    with locked(args.output):
        journal = Journal(args.output, [requests.request(line) for line in lines])
        missing = len(journal.missing)
        with progress_bar(total=len(lines), initial=len(lines) - missing, unit="line") as bar:
            speak_lines(
                journal,
                model,
                loading,
                requests.voices,
                requests.lexicons,
                workers=args.workers,
                address=args.address,
                told=bar.update,
            )
        for number, reason in journal.errors:
            remark(f"nightingale: line {number}: {reason}")
    if journal.errors:
        remark(f"nightingale: {len(journal.errors)} of {len(lines)} lines failed; run it again")
        return 1
    if on_terminal():
        remark(f"{args.output}: {missing} lines made, {len(lines) - missing} were there")
    return 0
