"""What `nightingale validate` does with its options."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .. import load
from ..cli.options import load_model, on_terminal, read_text, remark, speech_settings
from ..tts import TTS
from . import baseline
from .checks import Checklist, Plan
from .languages import SENTENCES
from .repeatability import sha256
from .report import Result, all_passed, as_json, table

TEXTS = (
    "The river rose in the night, and by morning the old bridge was gone.",
    "Did you hear that? Someone is singing in the garden.",
    "On the third of May, seven grey ships came back without their sails.",
)
MAX_TOKENS = 250
PAGE = Path("listening.html")
BAR = "{desc:<16}{bar} {n_fmt}/{total_fmt} {elapsed}"
NOT_JUDGED = "not judged: whether it speaks the words; a model that speaks noise can pass"


def run(args: argparse.Namespace) -> int:
    """Checks a model, or writes a listening page; the exit status."""
    if args.runs < 2:
        raise ValueError(f"--runs must be 2 or more, not {args.runs}")
    if args.update and args.baseline is None:
        raise ValueError("--update needs --baseline FILE")
    if args.ab:
        if args.baseline or args.plot or args.json:
            raise ValueError("--ab only writes a page: it takes no check's options")
        return _write_page(args)
    if args.output is not None:
        raise ValueError("-o names the page of --ab; checks print what they find")
    if args.plot:
        from . import plot

        plot.check(args.plot)
    return _check(args)


def _write_page(args: argparse.Namespace) -> int:
    from . import listening

    texts = _texts(args, args.language or "en")
    given = {name: getattr(args, name, None) for name in listening.SETTINGS}
    settings = {name: value for name, value in given.items() if value is not None}
    settings.setdefault("max_tokens", MAX_TOKENS)
    loading = {name: getattr(args, name) for name in ("dtype", "device", "threads", "offline")}
    one, other = (listening.side(given, loading, settings) for given in args.ab)
    with _progress(2 * len(texts)) as tick:
        trials = listening.trials(one, other, texts, tick, seed=args.seed or 0)
    page = args.output or PAGE
    listening.write_page(page, trials, args.ab, seed=args.seed or 0)
    print(f"{page}: to be opened in a browser; pairs to listen to: {len(trials)}")
    return 0


def _check(args: argparse.Namespace) -> int:
    kept = None
    if args.baseline and args.baseline.exists() and not args.update:
        kept = baseline.read(args.baseline)
    tts = load_model(args)
    plan = _plan(args, tts)
    inputs = _inputs(tts, plan)
    if kept is not None:
        baseline.refuse_other_inputs(args.baseline, kept, inputs)
    with _progress(plan.steps) as tick:
        checklist = Checklist(tts, plan, tick)
        results = list(checklist.run())
    if args.baseline:
        found = baseline.snapshot(tts, inputs, checklist.spoken, results)
        if kept is not None:
            results += baseline.compare(kept, found)
        else:
            baseline.write(args.baseline, found)
            remark(f"{args.baseline}: written, to be compared with next time")
    _print(results, args.json, tts, inputs)
    if args.plot:
        from . import plot

        plot.draw(tts, plan.texts[0], plan.settings, args.plot)
    return 0 if all_passed(results) else 1


def _plan(args: argparse.Namespace, tts: TTS) -> Plan:
    settings = speech_settings(args, tts)
    settings.setdefault("max_tokens", MAX_TOKENS)
    texts = _texts(args, settings.get("language", "en"))

    def in_precision(dtype: str) -> TTS:
        return load(args.model, dtype=dtype, device=args.device, offline=args.offline)

    return Plan(texts, settings, args.runs, args.quick, in_precision)


def _texts(args: argparse.Namespace, language: str) -> list[str]:
    """Those that were given, else the built-in ones of the language."""
    if args.text:
        return args.text
    if args.file is not None:
        lines = [line.strip() for line in read_text(args).splitlines()]
        if not any(lines):
            raise ValueError(f"{args.file} holds no text")
        return [line for line in lines if line]
    if language.lower() == "en":
        return list(TEXTS[:1] if args.quick else TEXTS)
    if language.lower() not in SENTENCES:
        raise ValueError(f"there is no text of our own in {language!r}: give --text or -f")
    return [SENTENCES[language.lower()]]


def _inputs(tts: TTS, plan: Plan) -> dict[str, Any]:
    """What the sound is a function of, beside the model."""
    voice = tts._voice(plan.settings.get("voice"))
    settings = {"language": "en", "seed": 0} | plan.settings
    settings.pop("voice", None)
    return {
        "texts": list(plan.texts),
        "settings": settings,
        "voice": sha256(voice.speaker_emb),
        "quick": plan.quick,
    }


def _print(results: list[Result], wants_json: bool, tts: TTS, inputs: dict[str, Any]) -> None:
    if wants_json:
        report = {"model": tts.info["model"], "context": baseline.context(tts), "inputs": inputs}
        print(json.dumps(report | as_json(results), ensure_ascii=False))
        return
    print(table(results))
    print(NOT_JUDGED)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal; what it gives is told what comes next."""
    from tqdm import tqdm

    with tqdm(total=total, disable=not on_terminal(), leave=False, bar_format=BAR) as bar:

        def tick(doing: str) -> None:
            bar.set_description_str(doing)
            bar.update()

        yield tick
