"""Whether mixes of two voices are understood, sound natural and lie between the two.

    python -m bench.mixed_voices JUDGE CLIPS [--sentences 10]

For each pair and share: the word error rate and the DistillMOS of English sentences, and how like
the speech is to each voice: the cosine of the speaker embedding of all of it and the voice's. The
shares 0 and 1 are the voices.

JUDGE is what the judge's set-up made, with score.py put in (train/metrics.py). Clips are kept in
CLIPS and not judged again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean

import numpy as np

import nightingale
from nightingale import Voice
from train.metrics import RECOGNIZERS, error_rate, judge

from .seams import SENTENCES

PAIRS = (
    ("af_heart", "am_michael"),
    ("af_heart", "bf_emma"),
    ("am_michael", "bm_george"),
    ("bf_emma", "bm_george"),
)
SHARES = (0.0, 0.25, 0.4, 0.5, 0.6, 0.75, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("judge", type=Path)
    parser.add_argument("clips", type=Path)
    parser.add_argument("--sentences", type=int, default=10)
    args = parser.parse_args()
    args.clips.mkdir(parents=True, exist_ok=True)
    tts = nightingale.load(device="cpu")
    sentences = SENTENCES[: args.sentences]
    print("| pair | share | WER Whisper, Moonshine % | DistillMOS | like the first | the other |")
    print("|---|---|---|---|---|---|")
    for pair in PAIRS:
        one, other = (tts._voice(name) for name in pair)
        for share in SHARES:
            voice = one.mixed(other, share)
            clips, sound = {}, []
            for i, text in enumerate(sentences):
                name = f"{pair[0]}-{pair[1]}-{share:g}-{i}"
                audio = tts.generate(text, voice=voice, seed=i)
                audio.save(args.clips / f"{name}.wav")
                clips[name] = (args.clips / f"{name}.wav", "en", text)
                sound.append(audio.samples)
            rows = list(judge(clips, args.judge, args.clips / "rows.jsonl").values())
            errors = ", ".join(f"{error_rate(rows, each):.1f}" for each in RECOGNIZERS)
            like = likeness(tts, np.concatenate(sound), (one, other))
            told = " | ".join(f"{each:.2f}" for each in (mean(row["mos"] for row in rows), *like))
            print(f"| {' and '.join(pair)} | {share:g} | {errors} | {told} |", flush=True)


def likeness(tts: nightingale.TTS, samples: np.ndarray, voices: tuple[Voice, Voice]) -> list[float]:
    """The cosines of a speech's speaker embedding and those of voices; each has the length 1."""
    found = tts.bake_voice(samples, 24_000).speaker_emb
    return [float(found @ voice.speaker_emb) for voice in voices]


if __name__ == "__main__":
    main()
