"""Pipecat's OpenAI service with `nightingale serve`: python pipecat_client.py URL TEXT FILE"""

import asyncio
import sys
import wave

from pipecat.frames.frames import EndFrame, TTSAudioRawFrame, TTSSpeakFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineParams, PipelineTask
from pipecat.services.openai.tts import OpenAITTSService


async def main(url: str, text: str, path: str) -> None:
    service = OpenAITTSService(api_key="any", base_url=f"{url}/v1")
    task = PipelineTask(Pipeline([service]), params=PipelineParams(audio_out_sample_rate=24000))
    sound: list[bytes] = []

    async def keep(_: object, frame: TTSAudioRawFrame) -> None:
        sound.append(frame.audio)

    task.set_reached_downstream_filter((TTSAudioRawFrame,))
    task.add_event_handler("on_frame_reached_downstream", keep)
    await task.queue_frames([TTSSpeakFrame(text), EndFrame()])
    await PipelineRunner(handle_sigint=False).run(task)
    with wave.open(path, "wb") as file:
        file.setparams((1, 2, 24000, 0, "NONE", "not compressed"))
        file.writeframes(b"".join(sound))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
