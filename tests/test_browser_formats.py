"""Real Chromium plays every streamed format whose length is left open."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("av", reason="pip install 'nightingale-tts[server]'")
pytest.importorskip("playwright", reason="pip install 'nightingale-tts[browser]'")

from nightingale.server.encoding import RESPONSE_FORMATS, Encoder

from .browser import CHROMIUM, chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]

SAMPLES = (0.3 * np.sin(2 * np.pi * 440 / 24000 * np.arange(24000))).astype(np.float32)
PLAY = """async (path) => {
  const audio = new Audio(path);
  const ended = new Promise((resolve) => {
    audio.addEventListener("ended", () => resolve("ended"));
    audio.addEventListener("error", () => resolve(audio.error.message));
  });
  await audio.play();
  return [await ended, audio.currentTime];
}"""


class Streaming(BaseHTTPRequestHandler):
    """Sends a second of sound in parts, in the format that the path names, without a length."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        kind = Path(self.path).name
        media_type = RESPONSE_FORMATS.get(kind, "text/html")
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if kind in RESPONSE_FORMATS:
            encoder = Encoder(kind)
            for part in np.array_split(SAMPLES, 5):
                self._send(encoder.write(part))
            self._send(encoder.finish())
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, data: bytes) -> None:
        if data:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


@pytest.fixture
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Streaming) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_streamed_formats_play_to_their_end(address: str) -> None:
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"{address}/")
        for kind in ("wav", "flac", "mp3", "opus", "ogg"):
            end, seconds = page.evaluate(PLAY, f"/{kind}")
            assert end == "ended", kind
            # What the codec adds; of FLAC the last block is left out where it is not full.
            assert seconds == pytest.approx(1.0, abs=0.1), kind
