"""Wyoming with `nightingale serve --wyoming`: python wyoming_client.py tcp://HOST:PORT TEXT FILE"""

import asyncio
import sys
import wave

from wyoming.audio import AudioChunk, AudioStop
from wyoming.client import AsyncClient
from wyoming.tts import Synthesize


async def main(url: str, text: str, path: str) -> None:
    async with AsyncClient.from_uri(url) as client:
        await client.write_event(Synthesize(text).event())
        with wave.open(path, "wb") as file:
            file.setparams((1, 2, 24000, 0, "NONE", "not compressed"))
            while event := await client.read_event():
                if AudioStop.is_type(event.type):
                    return
                if AudioChunk.is_type(event.type):
                    file.writeframes(AudioChunk.from_event(event).audio)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
