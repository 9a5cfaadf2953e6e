"""Runs all stages after the corpus in parallel on one GPU within a time limit.

    python -m train.recipe CORPUS OUT --minutes 24 [--stage-options STAGE "OPTIONS" ...]
    python -m train.recipe CORPUS OUT --resume EARLIER [--train vocoder,t3,flow] [--new STAGES]

The vocoder trains all the time. The speech tokenizer, the speaker encoders and the phoneme
classifier train first, then T3 and the flow on the tokens and vectors of the corpus. T3 overfits a
corpus earlier than the flow does: --t3-share ends it earlier. EARLIER has the weights of another
run: the stages of --train continue from them, the others are copied; by default the speech
tokenizer, the speaker encoders and the phoneme classifier are copied, because the others depend on
them. With --new speech_tokenizer a new one is trained all the same, and the tables of T3 and the
flow are adapted to its tokens (train/token_transfer.py) before they continue. OUT/logs has the
output of the stages. A stage that fails is restarted once from its last save.

Without MPS (`nvidia-cuda-mps-control -d`) processes that share a GPU take turns, which slows down
the vocoder with its many small kernels most. Do not limit the share of the processors of an MPS
process: on an H200, 30 to 44 % made every loss NaN and T3 half as fast.
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

from .options import command_parser

CLASSIFIER = "phoneme_classifier"
# Files that each stage writes in addition to those that begin with its name.
STAGES = {
    "vocoder": (),
    "speech_tokenizer": (),
    "speakers": (),
    CLASSIFIER: (),
    "t3": ("text_tokenizer.json",),
    "flow": ("meanflow.safetensors", "meanflow.json"),
}
RESUMED_STAGES = ("vocoder", "t3", "flow")  # that continue from earlier weights by default
TOKEN_STAGES = ("t3", "flow")  # that have a table of the tokenizer's tokens
TOKENIZER_SHARE, SPEAKERS_SHARE, CLASSIFIER_SHARE = 0.22, 0.15, 0.11  # of the run
ADAPTED = "adapted"  # folder of earlier weights that are adapted to a new tokenizer
DISTILL_SHARE = 0.35  # of the flow's time
SAVE_SECONDS = 15  # at the end, for the last report and save of every stage
EXIT_SECONDS = 45  # from SIGTERM to SIGKILL for a stage that is late
MIN_RETRY_SECONDS = 60  # with less time left a failed stage is not restarted


class Run:
    """One run of the recipe."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.began = time.time()
        self.end = self.began + 60 * options.minutes - SAVE_SECONDS
        self.failed: list[str] = []
        self.running: set[subprocess.Popen] = set()
        self.terminated = False
        self.logs = options.out / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)

    def forward_sigterm(self) -> Run:
        """From now on SIGTERM is sent to the stages, which save their weights and exit."""

        def end(signal_number: int, frame: object) -> None:
            self.terminated = True
            for process in list(self.running):
                process.terminate()

        signal.signal(signal.SIGTERM, end)
        return self

    def all(self) -> list[str]:
        """Runs all stages. → what failed"""
        vocoder = _start(self.train_or_copy, "vocoder", self.end)
        classifier = _start(self.run_phoneme_classifier)
        for thread in (
            _start(self.run_encoder, "speech_tokenizer", "tokenize", self.options.tokenizer_share),
            _start(self.run_encoder, "speakers", "embed", SPEAKERS_SHARE),
        ):
            thread.join()
        others = [vocoder]
        if not self.terminated and not {"tokenize", "embed"} & set(self.failed):
            self.transfer_tokens()
            now = time.time()
            t3_end = now + self.options.t3_share * (self.end - now)
            others.append(_start(self.train_or_copy, "t3", t3_end))
            classifier.join()
            others.append(_start(self.run_flow))
        for thread in (*others, classifier):
            thread.join()
        return self.failed

    def run_phoneme_classifier(self) -> None:
        """It is only needed to train the flow."""
        if self.is_trained("flow"):
            self.train_or_copy(CLASSIFIER, self._time(CLASSIFIER_SHARE))

    def run_flow(self) -> None:
        """Without the phoneme loss if the classifier failed."""
        classifier = ["--phoneme-classifier", str(self._weights(CLASSIFIER))]
        with_loss = [] if CLASSIFIER in self.failed else classifier
        self.train_or_copy("flow", self.end, "--distill-share", str(DISTILL_SHARE), *with_loss)

    def run_encoder(self, stage: str, command: str, share: float) -> None:
        """Trains or copies a stage that the others depend on, and applies it to the corpus."""
        self.train_or_copy(stage, self._time(share))
        result = self.options.out / ("tokens.npz" if command == "tokenize" else "speakers.npz")
        words = [f"train.{stage}", command, self.options.corpus, self._weights(stage), result]
        for _ in range(2):
            if self.run(command, [*words, *self.options.device], self.end) or self.terminated:
                return
        self.failed.append(command)

    def transfer_tokens(self) -> None:
        """Adapts the earlier weights of T3 and the flow to a new speech tokenizer."""
        earlier, adapted = self.options.resume, self.options.out / ADAPTED
        stages = [stage for stage in TOKEN_STAGES if self.is_trained(stage)]
        if not earlier or "speech_tokenizer" not in self.options.new:
            return
        before, after = adapted / "tokens.npz", self.options.out / "tokens.npz"
        weights = earlier / "speech_tokenizer.safetensors"
        tokenize = ["train.speech_tokenizer", "tokenize", self.options.corpus, weights, before]
        if not self.run("tokenize", [*tokenize, *self.options.device], self.end):
            self.failed.append("tokenize")
            return
        for stage in stages:
            files = (earlier / f"{stage}.safetensors", adapted / f"{stage}.safetensors")
            if files[0].exists():
                self.run(
                    "token_transfer", ["train.token_transfer", before, after, *files], self.end
                )

    def train_or_copy(self, stage: str, deadline: float, *arguments: str) -> None:
        """Trains a stage, or copies it from the earlier run."""
        earlier = self.options.resume
        if self.is_trained(stage):
            self.train(stage, deadline, *arguments)
            return
        files = {*earlier.glob(f"{stage}*"), *(earlier / name for name in STAGES[stage])}
        for file in files:
            if file.is_file():
                shutil.copyfile(file, self.options.out / file.name)

    def is_trained(self, stage: str) -> bool:
        """Whether the stage was chosen for training, or the earlier run does not have it."""
        return stage in self.options.train or self._earlier(stage) is None

    def train(self, stage: str, deadline: float, *arguments: str) -> None:
        """Trains a stage; restarts it once from its last save if it fails early enough."""
        options, saved = self.options, self._weights(stage)
        command = [f"train.{stage}", options.corpus, options.out, "--deadline", deadline]
        command += [*arguments, *options.device, *options.limits]
        command += options.stage_options.get(stage, [])
        earlier = self._earlier(stage)
        resume = ["--resume", earlier] if earlier else []
        if self.run(stage, [*command, *resume], deadline) or self.terminated:
            return
        if saved.exists():
            if deadline - time.time() < MIN_RETRY_SECONDS:
                print(f"{stage} failed; its last save is kept", flush=True)
                return
            resume = ["--resume", saved]
        if not self.run(stage, [*command, *resume], deadline) and not self.terminated:
            self.failed.append(stage)

    def run(self, name: str, command: list[object], deadline: float) -> bool:
        """Runs a command and returns whether it succeeded. It is terminated if it is late."""
        with (self.logs / f"{name}.log").open("a", encoding="utf-8") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", *map(str, command)], stdout=log, stderr=log
            )
            self.running.add(process)
            try:
                process.wait(max(deadline - time.time(), 0) + SAVE_SECONDS)
            except subprocess.TimeoutExpired:
                process.terminate()
                try:
                    process.wait(EXIT_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            self.running.discard(process)
        print(f"{time.time() - self.began:5.0f} s: {name} ended, {process.returncode}", flush=True)
        return process.returncode == 0

    def _earlier(self, stage: str) -> Path | None:
        """The weights that a stage continues from, if there are any."""
        options, name = self.options, f"{stage}.safetensors"
        if options.resume is None or stage in options.new:
            return None
        files = (options.out / ADAPTED / name, options.resume / name)
        return next((file for file in files if file.exists()), None)

    def _time(self, share: float) -> float:
        return self.began + share * (self.end - self.began)

    def _weights(self, stage: str) -> Path:
        return self.options.out / f"{stage}.safetensors"


def _start(work: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments)
    thread.start()
    return thread


def main(arguments: list[str]) -> None:
    parser = command_parser("recipe", __doc__, "corpus", "out")
    parser.add_argument("--minutes", type=float, default=24.0, help="of the whole run")
    parser.add_argument("--resume", type=Path, help="a folder with weights of an earlier run")
    parser.add_argument(
        "--train", help=f"stages, by comma; default: all, with --resume {','.join(RESUMED_STAGES)}"
    )
    parser.add_argument("--new", default="", help="stages to train anew in spite of --resume")
    parser.add_argument(
        "--tokenizer-share", type=float, default=TOKENIZER_SHARE, help="of the time"
    )
    parser.add_argument(
        "--t3-share", type=float, default=1.0, help="of the time after the tokenizer"
    )
    parser.add_argument(
        "--stage-options", nargs=2, action="append", default=[], metavar=("STAGE", "OPTIONS")
    )
    parser.add_argument("--size", default="small", help="of new networks")
    parser.add_argument("--steps", help="maximum of every stage")
    parser.add_argument("--device", default="")
    options = parser.parse_args(arguments)
    default = RESUMED_STAGES if options.resume else STAGES
    options.new = set(filter(None, options.new.split(",")))
    stages = {*(options.train.split(",") if options.train else default), *options.new}
    if unknown := stages - STAGES.keys():
        parser.error(f"unknown stage {', '.join(sorted(unknown))}; expected {', '.join(STAGES)}")
    if options.train and not options.resume:
        parser.error("--train needs --resume, which has the other stages")
    options.train = stages
    options.stage_options = {stage: given.split() for stage, given in options.stage_options}
    options.device = ["--device", options.device] if options.device else []
    options.limits = ["--size", options.size]
    if options.steps:
        options.limits += ["--steps", options.steps]
    if failed := Run(options).forward_sigterm().all():
        raise SystemExit(f"failed: {', '.join(failed)}; see {options.out / 'logs'}")


if __name__ == "__main__":
    main(sys.argv[1:])
