"""LiveKit's OpenAI plugin with `nightingale serve`: python livekit_client.py URL TEXT FILE"""

import asyncio
import sys
import wave

from livekit.plugins import openai


async def main(url: str, text: str, path: str) -> None:
    tts = openai.TTS(base_url=f"{url}/v1", api_key="any", model="tts-1", response_format="pcm")
    with wave.open(path, "wb") as file:
        file.setparams((1, 2, 24000, 0, "NONE", "not compressed"))
        async with tts.synthesize(text) as stream:
            async for event in stream:
                file.writeframes(bytes(event.frame.data))
    await tts.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
