"""Requests of Kokoro-FastAPI with `nightingale serve`: python kokoro_client.py URL TEXT FILE"""

import sys

import httpx


def main(url: str, text: str, path: str) -> None:
    voices = httpx.get(f"{url}/v1/audio/voices").raise_for_status().json()["voices"]
    body = {
        "model": "kokoro",
        "input": text,
        "voice": voices[0]["id"],
        "lang_code": "a",  # without it: that of the voice
        "response_format": "wav",
        "stream": True,
    }
    with httpx.stream("POST", f"{url}/v1/audio/speech", json=body, timeout=60) as answer:
        answer.raise_for_status()
        with open(path, "wb") as file:
            for part in answer.iter_bytes():
                file.write(part)


if __name__ == "__main__":
    main(*sys.argv[1:])
