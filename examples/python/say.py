"""Speaks a text into an audio file: python say.py "Hello there." hello.wav"""

import sys

import nightingale


def main(text: str, path: str) -> None:
    tts = nightingale.load()  # the embedded model; or the folder or hub id of a checkpoint
    audio = tts.generate(text, voice="af_heart", seed=1)
    audio.save(path)  # .wav, .flac, .ogg or .mp3
    for word, start, *_ in audio.words:
        print(f"{start:6.2f} s  {word}")
    print(f"{path}: {audio.duration:.2f} s, real-time factor {audio.timings['rtf']:.2f}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
