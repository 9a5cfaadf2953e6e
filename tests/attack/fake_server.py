"""A tiny server with one fault, for the attacker to find: python -m tests.attack.fake_server FAULT.

Faults: none, start, leak (of memory), files, threads, crash, hang, wrong, error and traceback.
"late" is none: memory and a file are given back half a second after the last request for speech.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SOUND = bytes(1000)
HEALTH = b'{"status": "ok", "running": 0, "waiting": 0}'
AFTER = 5  # requests for speech that go well
LATE_SECONDS = 0.5
LEAKED: list[Any] = []
TURN = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    """Answers like the server as far as the attacker's own requests go."""

    fault = "none"
    asked = 0
    late = threading.Timer(0, LEAKED.clear)
    timeout = 5

    def do_GET(self) -> None:
        self._answer(200, HEALTH)

    def do_POST(self) -> None:
        Handler.asked += 1
        length = self.headers.get("Content-Length") or "0"
        self.rfile.read(int(length) if length.isdigit() and int(length) < 10**6 else 0)
        due = Handler.asked > AFTER
        if due and self.fault in ("leak", "files", "threads"):
            self._leak()
        if self.fault == "late":
            self._give_back_late()
        if due and self.fault == "crash":
            os._exit(3)
        if due and self.fault == "hang":
            time.sleep(3600)
        if due and self.fault == "traceback":
            print("Traceback (most recent call last):\n  injected", file=sys.stderr, flush=True)
        wrong = due and self.fault == "wrong"
        self._answer(500 if due and self.fault == "error" else 200, b"no" if wrong else SOUND)

    def do_DELETE(self) -> None:
        self._answer(404, b"")

    def _leak(self) -> None:
        if self.fault == "leak":
            LEAKED.append(b"a" * 10_000_000)
        elif self.fault == "files":
            LEAKED.append(open(os.devnull))  # noqa: SIM115
        else:
            threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()

    def _give_back_late(self) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
        with TURN:
            Handler.late.cancel()
            LEAKED[:] = [mmap.mmap(-1, 20_000_000, flags), open(os.devnull)]  # noqa: SIM115
            Handler.late = threading.Timer(LATE_SECONDS, LEAKED.clear)
            Handler.late.start()

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *ignored: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *ignored: object) -> None:
        pass  # of clients that went away


if __name__ == "__main__":
    Handler.fault = sys.argv[1]
    if Handler.fault == "start":
        sys.exit("injected")
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(128 + number))
    with Server(("127.0.0.1", 0), Handler) as server:
        print(f"listening on http://127.0.0.1:{server.server_port}", file=sys.stderr, flush=True)
        server.serve_forever()
