"""Plays speech while it is generated: python stream_to_speakers.py "Hello there." """

import queue
import sys
import threading

import numpy as np
import sounddevice  # pip install "nightingale-tts[playback]"
from numpy.typing import NDArray

import nightingale

SAMPLE_RATE = 24000
Samples = NDArray[np.float32]


def play(chunks: queue.SimpleQueue[Samples | None]) -> None:
    """Writes chunks to the default device until None comes; a write lasts as long as its sound."""
    with sounddevice.OutputStream(samplerate=SAMPLE_RATE, channels=1, dtype="float32") as speakers:
        while (samples := chunks.get()) is not None:
            speakers.write(samples[:, None])


def main(text: str) -> None:
    tts = nightingale.load()
    # The device plays in a thread of its own, so that the next chunk is generated meanwhile.
    chunks: queue.SimpleQueue[Samples | None] = queue.SimpleQueue()
    player = threading.Thread(target=play, args=(chunks,))
    player.start()
    try:
        for chunk in tts.stream(text, seed=1):
            if chunk.index == 0:
                print(f"first audio after {chunk.timings['ttfa']:.2f} s")
            chunks.put(chunk.samples)
    finally:
        chunks.put(None)
        player.join()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
