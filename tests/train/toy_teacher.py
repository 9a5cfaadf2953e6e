"""A teacher's folder whose speak.py hums: a tone a phoneme, 100 ms each, silence around."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

SPEAK = """
import json, sys
from pathlib import Path
import numpy as np
from safetensors.numpy import load_file

teacher, texts, out = map(Path, sys.argv[1:4])
first, step = (int(n) for n in sys.argv[sys.argv.index("--part") + 1].split("/")) \\
    if "--part" in sys.argv else (0, 1)
vocabulary = json.loads((teacher / "vocab.json").read_text())
voices = load_file(teacher / "voices.safetensors")
out.mkdir(parents=True)
rows, clips, start = [], [], 0
for line in texts.read_text("utf-8").splitlines()[first::step]:
    row = json.loads(line)
    ids = [vocabulary[c] for c in row["phonemes"] if c in vocabulary]
    durations = [12] + [4 if i != vocabulary["Q"] else 40 for i in ids] + [20]
    wave = [np.zeros(12 * 600)]
    for i, frames in zip(ids, durations[1:-1]):
        wave.append(np.sin(2 * np.pi * (200 + 30 * i) * np.arange(frames * 600) / 24000))
    wave.append(np.zeros(20 * 600))
    sound = np.round(32767 * voices[row["voice"]][0, 0] * np.concatenate(wave)).astype(np.int16)
    rows.append(row | {"shard": "audio-00000.npy", "start": start, "samples": len(sound),
                       "durations": durations})
    clips.append(sound)
    start += len(sound)
np.save(out / "audio-00000.npy", np.concatenate(clips))
(out / "index.jsonl").write_text("".join(json.dumps(r) + "\\n" for r in rows), "utf-8")
"""


def write_teacher(folder: Path) -> Path:
    """voices: the amplitude of the tones, 20 dB apart."""
    folder.mkdir()
    (folder / "speak.py").write_text(SPEAK, encoding="utf-8")
    signs = "abcdefghijklmnopqrstuvwxyzQ .,!"
    (folder / "vocab.json").write_text(json.dumps({sign: n for n, sign in enumerate(signs)}))
    loud, soft = np.full((510, 256), 0.4, np.float32), np.full((510, 256), 0.04, np.float32)
    save_file({"af_heart": loud, "am_puck": soft}, folder / "voices.safetensors")
    return folder
