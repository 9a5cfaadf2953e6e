"""Clones a voice: python clone_a_voice.py reference.wav "Hello there." cloned.wav"""

import sys
from pathlib import Path

import nightingale


def main(recording: str, text: str, path: str) -> None:
    tts = nightingale.load()
    voice_file = Path(recording).with_suffix(".safetensors")
    if voice_file.exists():
        voice = nightingale.Voice.load(voice_file)
    else:  # ten seconds of one speaker, with that speaker's consent
        voice = tts.bake_voice(recording)
        voice.save(voice_file)
        print(f"voice saved as {voice_file}")
    audio = tts.generate(text, voice=voice, seed=1)
    audio.save(path)
    print(f"{path}: {audio.duration:.2f} s")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], sys.argv[3])
