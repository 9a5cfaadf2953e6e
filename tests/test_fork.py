"""Processes that are forked while others speak."""

from __future__ import annotations

import subprocess
import sys

# The children of a process whose lanes (csrc/nightingale/ops/lanes.h) are at work.
CHILDREN = """
import os, sys, threading, time
import nightingale

tts = nightingale.load(device="cpu")
sentences = ["The birch canoe slid on the smooth planks."] * 12
speaking = threading.Thread(target=lambda: tts.generate_batch(sentences))
speaking.start()
left, waiting = 0, []
while speaking.is_alive() and len(waiting) < 12:
    time.sleep(0.1)
    child = os.fork()
    if child == 0:
        sys.exit(0)  # unlike os._exit, it runs what is left to do at exit
    waiting.append(child)
end = time.monotonic() + 20
while waiting and time.monotonic() < end:
    waiting = [child for child in waiting if os.waitpid(child, os.WNOHANG)[0] == 0]
    time.sleep(0.05)
for child in waiting:
    os.kill(child, 9)
speaking.join()
print("still there:", len(waiting))
"""


def test_a_child_can_leave_while_its_parent_speaks() -> None:
    """It has none of its parent's threads, so nothing may wait for them."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", CHILDREN]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert found.stdout == "still there: 0\n", found.stderr
