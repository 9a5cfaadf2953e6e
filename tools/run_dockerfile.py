"""Runs the steps of packaging/docker/Dockerfile in a chroot, for machines without Docker.

    sudo python tools/run_dockerfile.py FOLDER [--wheel FILE]

Needs root and Debian's debootstrap. FOLDER must not exist; the root file system of each stage
stays there. --wheel: takes the place of what the stage `build` makes, which needs minutes. At the
end the image's command runs as its user: its health check must pass and it must speak. Prints what
was found as JSON: the size of the root file system in MB, the user's id, bytes of speech.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.request import Request, urlopen

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "packaging" / "docker" / "Dockerfile"
SUITES = {"debian:bookworm-slim": "bookworm"}
# What the slim images of Debian leave out.
UNWANTED = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # of containers
MOST_MEGABYTES = 400
KEY = "a key for the check"
PATIENCE = 120.0  # seconds


@dataclass(frozen=True)
class Stage:
    """A stage as it stands after some of its steps."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    folder: str = "/"
    user: str = "root"
    health: tuple[str, ...] = ()
    entry: tuple[str, ...] = ()
    command: tuple[str, ...] = ()

    def run(self, *words: str, **settings: object) -> subprocess.Popen[bytes]:
        """Begins a program in the stage as its user."""
        command = ["chroot", "--userspec", self.user, str(self.root), "/usr/bin/env", "-C",
                   self.folder, *words]  # fmt: skip
        home = {"HOME": self.folder, "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        return subprocess.Popen(command, env=home | self.environment, **settings)  # type: ignore[call-overload, no-any-return]

    def shell(self, script: str) -> None:
        if status := self.run("/bin/sh", "-ec", script, stdout=sys.stderr).wait():
            raise SystemExit(f"{script}\nfailed with status {status}")


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """The instructions of a Dockerfile and what follows them."""
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        name, _, rest = line.partition(" ")
        yield name, " ".join(rest.split()) if name == "FROM" else rest.strip()


def build(text: str, folder: Path, wheel: Path | None) -> Stage:
    """Runs all stages; gives the last."""
    stages: dict[str, Stage] = {}
    name, stage = "", Stage(folder)
    skipped = False
    for instruction, rest in instructions(text):
        if instruction == "FROM":
            base, _, name = rest.partition(" AS ")
            name = name or "image"
            skipped = wheel is not None and name == "build"
            stage = _begin(folder / name, stages.get(base), base)
            if skipped and wheel is not None:
                (stage.root / "wheels").mkdir()
                shutil.copy(wheel, stage.root / "wheels")
        elif not skipped:
            print(f"{name}: {instruction} {rest}"[:120], file=sys.stderr, flush=True)
            stage = _step(stage, stages, instruction, rest)
        stages[name] = stage
    return stage


def _begin(root: Path, base: Stage | None, image: str) -> Stage:
    if base is not None:
        subprocess.run(["cp", "-a", base.root, root], check=True)
        return replace(base, root=root)
    suite = SUITES[image]
    subprocess.run(["debootstrap", "--variant=minbase", suite, root], check=True, stdout=sys.stderr)
    for place in UNWANTED:
        shutil.rmtree(root / place, ignore_errors=True)
    excluded = "".join(f"path-exclude /{place}/*\n" for place in UNWANTED)
    (root / "etc/dpkg/dpkg.cfg.d/slim").write_text(excluded)
    # As Debian's images have it, so that apt keeps nothing.
    (root / "etc/apt/apt.conf.d/clean").write_text(
        'Dir::Cache::pkgcache "";\nDir::Cache::srcpkgcache "";\n'
        'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb"; };\n'
    )
    shutil.rmtree(root / "var/lib/apt/lists")
    shutil.rmtree(root / "var/cache/apt/archives")
    return Stage(root)


def _step(stage: Stage, stages: dict[str, Stage], instruction: str, rest: str) -> Stage:
    if instruction == "RUN":
        stage.shell(rest)
    elif instruction == "COPY":
        _copy(stage, stages, shlex.split(rest))
    elif instruction == "ENV":
        values = dict(word.split("=", 1) for word in shlex.split(rest))
        path = stage.environment["PATH"]
        found = {name: value.replace("$PATH", path) for name, value in values.items()}
        return replace(stage, environment=stage.environment | found)
    elif instruction == "USER":
        return replace(stage, user=rest)
    elif instruction == "WORKDIR":
        (stage.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        return replace(stage, folder=rest)
    elif instruction == "HEALTHCHECK":
        return replace(stage, health=tuple(json.loads(rest.partition("CMD ")[2])))
    elif instruction == "ENTRYPOINT":
        return replace(stage, entry=tuple(json.loads(rest)))
    elif instruction == "CMD":
        return replace(stage, command=tuple(json.loads(rest)))
    elif instruction not in ("VOLUME", "EXPOSE"):
        raise SystemExit(f"unknown instruction {instruction}")
    return stage


def _copy(stage: Stage, stages: dict[str, Stage], words: list[str]) -> None:
    if words[0].startswith("--from="):
        source = stages[words[0].removeprefix("--from=")].root / words[1].lstrip("/")
        subprocess.run(["cp", "-a", source, stage.root / words[2].lstrip("/")], check=True)
        return
    ignored = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text().splitlines()
    wanted = [line.removeprefix("!") for line in ignored if line.startswith("!")]
    files = subprocess.run(
        ["git", "ls-files", "-z", "--", *wanted], cwd=ROOT, check=True, capture_output=True
    ).stdout
    for name in files.decode().split("\0")[:-1]:
        target = stage.root / stage.folder.lstrip("/") / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)


@contextmanager
def running(stage: Stage) -> Iterator[subprocess.Popen[bytes]]:
    """The image's command, with a key."""
    secrets = stage.root / "run" / "secrets"
    secrets.mkdir(parents=True)
    (secrets / "nightingale_key").write_text(KEY)
    process = stage.run(*stage.entry, *stage.command)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
        shutil.rmtree(secrets)


def check(stage: Stage) -> dict[str, int]:
    """What is found of an image; SystemExit where something is wrong with it."""
    used = subprocess.run(
        ["du", "--summarize", "--block-size=1000000", stage.root], check=True, capture_output=True
    ).stdout
    megabytes = int(used.split()[0])
    if megabytes > MOST_MEGABYTES:
        raise SystemExit(f"the root file system has {megabytes} MB, more than {MOST_MEGABYTES}")
    with running(stage) as process:
        end = time.monotonic() + PATIENCE
        while stage.run(*stage.health, stderr=subprocess.DEVNULL).wait():
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit("the health check does not pass")
            time.sleep(0.5)
        user = os.stat(f"/proc/{process.pid}").st_uid
        if user == 0:
            raise SystemExit("the server runs as root")
        asked = Request(
            "http://127.0.0.1:8765/v1/audio/speech",
            json.dumps({"input": "Hello there."}).encode(),
            {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
        )
        with urlopen(asked, timeout=PATIENCE) as answer:
            spoken = len(answer.read())
    return {"megabytes": megabytes, "user": user, "speech_bytes": spoken}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wheel", type=Path)
    args = parser.parse_args()
    args.folder.mkdir()
    print(json.dumps(check(build(DOCKERFILE.read_text("utf-8"), args.folder, args.wheel))))


if __name__ == "__main__":
    main()
