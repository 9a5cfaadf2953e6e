"""All stages that follow the corpus, side by side on one GPU, in the minutes that there are.

    python -m train.recipe CORPUS OUT --minutes 24 [--of STAGE "OPTIONS" ...]
    python -m train.recipe CORPUS OUT --resume EARLIER [--train vocoder,t3,flow]

The vocoder learns all the time; the tokenizer, the speaker encoders and the flow's ear at first,
then T3 and the flow on what these say of the corpus. T3 may have had enough of a corpus long before
the flow has: --t3-time leaves the flow the GPU after that. EARLIER has the weights of another run:
the stages that --train names go on from them, the others stay as they are there. By default these
are the tokenizer, the speaker encoders and the ear, which the others depend on. OUT/logs has what
the stages print. A stage that fails goes on once from what it saved.

Without MPS (`nvidia-cuda-mps-control -d`) stages that share a GPU wait for each other's turns, the
vocoder, of many small kernels, longest. MPS's limit on a process's share of the processors is left
alone: on an H200, 30 to 44 % made every loss no number, and T3 half as fast.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

# What each stage writes beside its own files, which begin with its name.
STAGES = {
    "vocoder": (),
    "speech_tokenizer": (),
    "speakers": (),
    "ear": (),
    "t3": ("text_tokenizer.json",),
    "flow": ("meanflow.safetensors", "meanflow.json"),
}
GO_ON = ("vocoder", "t3", "flow")  # from earlier weights, if nothing else is said
TOKENIZER_TIME, SPEAKERS_TIME, EAR_TIME = 0.22, 0.15, 0.11  # of the run
DISTILLING = 0.35  # of the flow's time
SAVING = 15  # seconds at the end, for what every stage has to say and to save
ENDING = 45  # seconds that one which overstays has to end
WORTH_WHILE = 60  # seconds, below which a stage that failed is left at what it saved


class Run:
    """One run of the recipe."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.began = time.time()
        self.end = self.began + 60 * options.minutes - SAVING
        self.failed: list[str] = []
        self.running: set[subprocess.Popen] = set()
        self.terminated = False
        self.logs = options.out / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)

    def heed_termination(self) -> Run:
        """From now on SIGTERM goes to the stages, which save what they have."""

        def end(signal_number: int, frame: object) -> None:
            self.terminated = True
            for process in list(self.running):
                process.terminate()

        signal.signal(signal.SIGTERM, end)
        return self

    def all(self) -> list[str]:
        """→ what failed"""
        vocoder = _start(self.have, "vocoder", self.end)
        ear = _start(self.have_ear)
        for thread in (
            _start(self.describe, "speech_tokenizer", "tokens", self.options.tokenizer_time),
            _start(self.describe, "speakers", "embed", SPEAKERS_TIME),
        ):
            thread.join()
        others = [vocoder]
        if not self.terminated and not {"tokens", "embed"} & set(self.failed):
            now = time.time()
            others.append(_start(self.have, "t3", now + self.options.t3_time * (self.end - now)))
            ear.join()
            others.append(_start(self.have_flow))
        for thread in (*others, ear):
            thread.join()
        return self.failed

    def have_ear(self) -> None:
        """If there is a flow to hear."""
        if self.trains("flow"):
            self.have("ear", self.began + EAR_TIME * (self.end - self.began))

    def have_flow(self) -> None:
        """One whose ear failed learns without it."""
        heard = [] if "ear" in self.failed else ["--ear", str(self.options.out / "ear.safetensors")]
        self.have("flow", self.end, "--distil", str(DISTILLING), *heard)

    def describe(self, stage: str, command: str, share: float) -> None:
        """Has one of the two that the others depend on, and has it hear the corpus."""
        self.have(stage, self.began + share * (self.end - self.began))
        out = self.options.out
        weights = out / f"{stage}.safetensors"
        result = out / ("tokens.npz" if command == "tokens" else "speakers.npz")
        hear = [f"train.{stage}", command, self.options.corpus, weights, result]
        for _ in range(2):
            if self.run(command, [*hear, *self.options.device], self.end) or self.terminated:
                return
        self.failed.append(command)

    def have(self, stage: str, until: float, *arguments: str) -> None:
        """Trains a stage, or takes it from the earlier run."""
        out, earlier = self.options.out, self.options.resume
        if self.trains(stage):
            self.train(stage, until, *arguments)
            return
        given = {*earlier.glob(f"{stage}*"), *(earlier / name for name in STAGES[stage])}
        for file in given:
            if file.is_file():
                shutil.copyfile(file, out / file.name)

    def trains(self, stage: str) -> bool:
        """Whether the stage is one to train, or there is none of an earlier run."""
        earlier = self.options.resume
        return stage in self.options.train or not (earlier / f"{stage}.safetensors").exists()

    def train(self, stage: str, until: float, *arguments: str) -> None:
        """Where it fails it goes on once from what it saved, if that is worth while."""
        options, weights = self.options, f"{stage}.safetensors"
        command = [f"train.{stage}", options.corpus, options.out, "--until", until, *arguments]
        command += [*options.device, *options.slice, *options.of.get(stage, [])]
        earlier = options.resume and options.resume / weights
        resume = ["--resume", earlier] if earlier and earlier.exists() else []
        if self.run(stage, [*command, *resume], until) or self.terminated:
            return
        if (saved := options.out / weights).exists():
            if until - time.time() < WORTH_WHILE:
                print(f"{stage} is left at what it saved", flush=True)
                return
            resume = ["--resume", saved]
        if not self.run(stage, [*command, *resume], until) and not self.terminated:
            self.failed.append(stage)

    def run(self, name: str, command: list[object], until: float) -> bool:
        """Whether it ended well. If it overstays it is asked to end."""
        with (self.logs / f"{name}.log").open("a", encoding="utf-8") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", *map(str, command)], stdout=log, stderr=log
            )
            self.running.add(process)
            try:
                process.wait(max(until - time.time(), 0) + SAVING)
            except subprocess.TimeoutExpired:
                process.terminate()
                try:
                    process.wait(ENDING)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            self.running.discard(process)
        print(f"{time.time() - self.began:5.0f} s: {name} ended, {process.returncode}", flush=True)
        return process.returncode == 0


def _start(work: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments)
    thread.start()
    return thread


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m train.recipe",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path, help="a folder")
    parser.add_argument("--minutes", type=float, default=24.0, help="in all")
    parser.add_argument("--resume", type=Path, help="a folder with weights of an earlier run")
    parser.add_argument("--train", help="stages, by comma (default: all; of an earlier run, some)")
    parser.add_argument(
        "--tokenizer-time", type=float, default=TOKENIZER_TIME, help="the share of the time it has"
    )
    parser.add_argument(
        "--t3-time", type=float, default=1.0, help="T3's share of what is left, the flow's is all"
    )
    parser.add_argument("--of", nargs=2, action="append", default=[], metavar=("STAGE", "OPTIONS"))
    parser.add_argument("--size", default="small", help="of new networks")
    parser.add_argument("--steps", help="of every stage, at most")
    parser.add_argument("--device", default="")
    options = parser.parse_args(arguments)
    named = options.train.split(",") if options.train else GO_ON if options.resume else STAGES
    if unknown := set(named) - STAGES.keys():
        parser.error(f"no stage is named {', '.join(sorted(unknown))}: {', '.join(STAGES)}")
    if options.train and not options.resume:
        parser.error("--train leaves stages out, which --resume has to bring")
    options.train = set(named)
    options.of = {stage: given.split() for stage, given in options.of}
    options.device = ["--device", options.device] if options.device else []
    options.slice = ["--size", options.size]
    if options.steps:
        options.slice += ["--steps", options.steps]
    if failed := Run(options).heed_termination().all():
        raise SystemExit(f"failed: {', '.join(failed)}; see {options.out / 'logs'}")


if __name__ == "__main__":
    main(sys.argv[1:])
