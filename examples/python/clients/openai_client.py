"""OpenAI's package with `nightingale serve`: python openai_client.py URL TEXT FILE"""

import sys

from openai import OpenAI


def main(url: str, text: str, path: str) -> None:
    client = OpenAI(base_url=f"{url}/v1", api_key="any")
    with client.audio.speech.with_streaming_response.create(
        model="nightingale",
        voice="default",
        input=text,
        response_format="wav",
        extra_body={"language": "en", "seed": 1},  # what OpenAI's interface does not have
    ) as answer:
        answer.stream_to_file(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
