"""`validate`: the quality checklist as one command."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..option import options_of
from ..options import LoadOptions, SpeechOptions
from .options import CHUNKS, MARKUP, Arguments, add_shared, at_least, progress_bar, remark

if TYPE_CHECKING:
    from ..tts import TTS
    from ..validate.checks import Plan
    from ..validate.report import Result

TEXTS = (
    "The river rose in the night, and by morning the old bridge was gone.",
    "Did you hear that? Someone is singing in the garden.",
    "On the third of May, seven grey ships came back without their sails.",
)
MAX_TOKENS = 250
PAGE = Path("listening.html")
BAR = "{desc:<16}{bar} {n_fmt}/{total_fmt} {elapsed}"
NOT_JUDGED = "not judged: whether it speaks the words; a model that speaks noise can pass"


def add_commands(commands: Any) -> None:
    command = commands.add_parser(
        "validate",
        help="check a model's sound: the same every time, whole in chunks, clean",
        description="Speaks with a model and checks what comes out; exits with 1 where a check "
        "fails. docs/reference/validation.md lists the checks.",
    )
    command.add_argument(
        "--quick", action="store_true", help="one text, one chunk size, one precision"
    )
    command.add_argument(
        "--runs",
        type=int,
        default=3,
        metavar="N",
        help="that must give the same audio (%(default)s)",
    )
    command.add_argument(
        "--baseline", type=Path, metavar="FILE", help="compare with this file, or make it"
    )
    command.add_argument("--update", action="store_true", help="write the baseline anew")
    command.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="also draw waveform, mel and F0 (.png, .svg, .pdf)",
    )
    text = command.add_mutually_exclusive_group()
    text.add_argument(
        "--text", action="append", help="what to say; may be given several times (default: our own)"
    )
    text.add_argument("-f", "--file", metavar="FILE", help="a file in UTF-8 with one text a line")
    add_shared(command, speech=True, without=(CHUNKS, MARKUP), max_tokens=MAX_TOKENS)
    group = command.add_argument_group("listening, instead of checking")
    group.add_argument(
        "--ab",
        nargs=2,
        metavar=("A", "B"),
        help="write a page for blind listening to two models (FOLDER[,setting=value]...), "
        "recordings or folders of recordings",
    )
    group.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="the page (default: listening.html)"
    )
    command.set_defaults(run=_validate)


def _validate(args: Arguments) -> int:
    """Checks a model, or writes a listening page; the exit status."""
    at_least(2, "--runs", args.runs)
    if args.update and args.baseline is None:
        raise ValueError("--update needs --baseline FILE")
    if args.ab:
        if args.baseline or args.plot or args.json:
            raise ValueError("--ab only writes a page: it takes no check's options")
        return _write_page(args)
    if args.output is not None:
        raise ValueError("-o names the page of --ab; checks print what they find")
    if args.plot:
        from ..validate import plot

        plot.check(args.plot)
    return _check(args)


def _write_page(args: Arguments) -> int:
    from ..validate import listening

    texts = _texts(args, args.language or "en")
    speech = {"max_tokens": MAX_TOKENS, **args.given(SpeechOptions)}
    loading = args.given(LoadOptions)
    one, other = (listening.side(each, loading, speech) for each in args.ab)
    with _progress(2 * len(texts)) as tick:
        trials = listening.trials(one, other, texts, tick, seed=args.seed or 0)
    page = args.output or PAGE
    listening.write_page(page, trials, args.ab, seed=args.seed or 0)
    print(f"{page}: to be opened in a browser; pairs to listen to: {len(trials)}")
    return 0


def _check(args: Arguments) -> int:
    from ..validate import baseline
    from ..validate.checks import Checklist
    from ..validate.report import all_passed

    kept = None
    if args.baseline and args.baseline.exists() and not args.update:
        kept = baseline.read(args.baseline)
    tts = args.load_model()
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
        from ..validate import plot

        plot.draw(tts, plan.texts[0], plan.options, args.plot)
    return 0 if all_passed(results) else 1


def _plan(args: Arguments, tts: TTS) -> Plan:
    from ..validate.checks import Plan

    options = args.speech_options(tts, max_tokens=MAX_TOKENS)

    def in_precision(dtype: str) -> TTS:
        return args.load_model(dtype=dtype)

    return Plan(_texts(args, options.language), options, args.runs, args.quick, in_precision)


def _texts(args: Arguments, language: str) -> list[str]:
    """Those that were given, else the built-in ones of the language."""
    if args.text:
        return list(args.text)
    if args.file is not None:
        lines = [line.strip() for line in args.read_text().splitlines()]
        if not any(lines):
            raise ValueError(f"{args.file} holds no text")
        return [line for line in lines if line]
    from ..validate.languages import SENTENCES

    if language.lower() == "en":
        return list(TEXTS[:1] if args.quick else TEXTS)
    if language.lower() not in SENTENCES:
        raise ValueError(f"there is no text of our own in {language!r}: give --text or -f")
    return [SENTENCES[language.lower()]]


def _inputs(tts: TTS, plan: Plan) -> dict[str, Any]:
    """What the sound is a function of, beside the model."""
    from ..validate.repeatability import sha256

    voice = tts._voice(plan.options.voice)
    always = ("language", "seed")
    values = {o.name: (getattr(plan.options, o.name), o.default) for o in options_of(SpeechOptions)}
    del values["voice"]
    return {
        "texts": list(plan.texts),
        "settings": {n: v for n, (v, default) in values.items() if v != default or n in always},
        "voice": sha256(voice.speaker_emb),
        "quick": plan.quick,
    }


def _print(results: list[Result], wants_json: bool, tts: TTS, inputs: dict[str, Any]) -> None:
    from ..validate.baseline import context
    from ..validate.report import as_json, table

    if wants_json:
        report = {"model": tts.info["model"], "context": context(tts), "inputs": inputs}
        print(json.dumps(report | as_json(results), ensure_ascii=False))
        return
    print(table(results))
    print(NOT_JUDGED)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal; what it gives is told what comes next."""
    with progress_bar(total=total, bar_format=BAR) as bar:

        def tick(doing: str) -> None:
            bar.set_description_str(doing)
            bar.update()

        yield tick
