"""Interface strings through Debian's Speech Dispatcher: time to first audio, and of a cancel.

    python -m bench.spd_say [--strings 200] [--json FILE]

Speech Dispatcher runs with the module `sd_nightingale` and the embedded voice, and plays to a file.
A time begins before the process `spd-say` is started. The first audio is what the module first
sends to Speech Dispatcher; a cancel ends with the last that it sends of a long text. No string may
be skipped. What passes between both is timed by a relay, which is this file as well.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from itertools import islice, product
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from nightingale.audio import SAMPLE_RATE
from nightingale.checkpoint import EMBEDDED

LABELS = (
    *("File", "Edit", "View", "Insert", "Format", "Tools", "Window", "Help", "New", "Open", "Save"),
    *("Save as", "Print", "Close", "Undo", "Redo", "Cut", "Copy", "Paste", "Find", "Replace"),
    *("Select all", "Zoom in", "Zoom out", "Settings", "Search", "Downloads", "Desktop", "Home"),
    *("Music", "Pictures", "Videos", "Trash", "Sound", "Network", "Battery", "Bluetooth", "Power"),
    *("Log out", "Restart", "Shut down", "Back", "Forward", "Reload", "Bookmarks", "History"),
    *("Reply", "Send", "Delete", "Attach file"),
)
ROLES = ("button", "menu item", "check box not checked", "link")
LONG = "This will not be heard to its end. " * 30
CANCELS = 10
SHORTEST = 0.15  # seconds of sound that a string must give at least
PATIENCE = 60.0  # seconds
ESCAPE = b"\x7d"  # before a byte that a line cannot have


def strings(count: int) -> list[str]:
    """Short texts as screen readers say them."""
    return list(islice((f"{label} {role}" for role, label in product(ROLES, LABELS)), count))


class Client:
    """spd-say, and what the relay notes."""

    def __init__(self, environment: dict[str, str], notes: Path) -> None:
        self._environment = environment
        self._notes = notes

    def say(self, *words: str) -> None:
        subprocess.run(["spd-say", *words], env=self._environment, check=True, timeout=PATIENCE)

    def audio(self, since: float) -> list[tuple[float, int]]:
        """When sound was sent after a time, and bytes of it."""
        lines = self._notes.read_text().splitlines() if self._notes.exists() else []
        found = [(float(time), int(size)) for time, size in map(str.split, lines)]
        return [(time, size) for time, size in found if time >= since]

    def wait_for_audio(self, since: float) -> None:
        while not self.audio(since):
            if time.monotonic() - since > PATIENCE:
                raise SystemExit("no sound came")
            time.sleep(0.002)


def say(client: Client, text: str) -> tuple[float, float]:
    """Seconds to the first audio of a text, and of its sound."""
    began = time.monotonic()
    client.say("-w", text)
    audio = client.audio(began)
    first = audio[0][0] - began if audio else PATIENCE
    return first, sum(size for _, size in audio) / 2 / SAMPLE_RATE


def cancel(client: Client) -> float:
    """Seconds from the cancel of a long text to its last sound; 0 where none came after it."""
    began = time.monotonic()
    client.say(LONG)
    client.wait_for_audio(began)
    cancelled = time.monotonic()
    client.say("-C")
    time.sleep(1.0)
    return max((when - cancelled for when, _ in client.audio(cancelled)), default=0.0)


def measure(client: Client, texts: list[str]) -> dict[str, Any]:
    say(client, "Ready.")
    spoken = [say(client, text) for text in texts]
    skipped = [text for text, (_, sound) in zip(texts, spoken, strict=True) if sound < SHORTEST]
    first = [seconds for seconds, _ in spoken]
    cancels = [cancel(client) for _ in range(CANCELS)]
    return {
        "strings": len(texts),
        "skipped": skipped,
        "first_audio_p50": median(first),
        "first_audio_p95": quantiles(first, n=20)[-1],
        "sound_median": median(sound for _, sound in spoken),
        "cancel_median": median(cancels),
        "cancel_worst": max(cancels),
    }


def relay(notes: Path, *arguments: str) -> None:
    """Is the module to Speech Dispatcher, and notes when the real one sends sound, and how much."""
    command = [sys.executable, "-m", "nightingale.speech_dispatcher", *arguments]
    module = subprocess.Popen(command, stdin=sys.stdin.buffer, stdout=subprocess.PIPE)
    assert module.stdout is not None
    with notes.open("a", buffering=1) as file:
        for line in module.stdout:
            if line.startswith(b"705-AUDIO"):
                sound = line[len(b"705-AUDIO\0") : -1]
                file.write(f"{time.monotonic()} {len(sound) - sound.count(ESCAPE)}\n")
            sys.stdout.buffer.write(line)
            if not line.startswith(b"705-"):  # the last line of an event is without the dash
                sys.stdout.buffer.flush()
    sys.exit(module.wait())


def main() -> None:
    if sys.argv[1:2] == ["--relay"]:
        relay(Path(sys.argv[2]), *sys.argv[3:])
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--strings", type=int, default=200)
    arguments.add_argument("--model", type=Path, default=EMBEDDED)
    arguments.add_argument("--json", type=Path)
    args = arguments.parse_args()
    from tests.test_speech_dispatcher import speech_dispatcher

    with tempfile.TemporaryDirectory() as folder:
        place, notes = Path(folder) / "dispatcher", Path(folder) / "notes"
        module = f'-m bench.spd_say --relay "{notes}"'
        with speech_dispatcher(place, args.model, module) as environment:
            found = measure(Client(environment, notes), strings(args.strings))
    if args.json:
        args.json.write_text(json.dumps(found))
    for name in ("first_audio_p50", "first_audio_p95", "cancel_median", "cancel_worst"):
        print(f"{name:<16}{1000 * found[name]:.0f} ms")
    print(f"{found['strings']} strings, {len(found['skipped'])} skipped")
    sys.exit(bool(found["skipped"]))


if __name__ == "__main__":
    main()
