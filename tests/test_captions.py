"""Captions from word times: their rules, and files that other programs read."""

from __future__ import annotations

import html
import random
import re
from itertools import pairwise
from pathlib import Path

import av
import pytest
import webvtt

import nightingale
from nightingale import cli
from nightingale.captions import LINE, LONGEST, SHORTEST, caption_file, captions
from nightingale.word_times import Word

from .command import names_in

TEXT = (
    'Dr. Smith paid $5.50 on Monday, 3/4/2024, for "two" books.  [pause 2s] Then he (slowly) went '
    "home; nobody saw him on the long road to the village. Hi. Yes. No.\n\n今天天气很好。"
)


def spoken(text: str, draw: random.Random | None = None) -> list[Word]:
    """Words of a text, one for what stands between spaces, of 0.3 s or as drawn."""
    words, time = [], 0.0
    for found in re.finditer(r"\[pause [^]]*\]|\S+", text):
        core = re.search(r"[\w$](?:.*\w)?", found[0])
        if found[0].startswith("[") or core is None:
            time += 2.0
            continue
        end = time + 0.3 * (draw.uniform(0.5, 2) if draw else 1)
        begin = found.start() + core.start()
        place = (begin, begin + len(core[0]))
        words.append(Word(core[0], round(time, 3), round(end, 3), *place))
        time = end + 0.02
    return words


def test_captions_show_the_text_as_it_was_written() -> None:
    found = captions(spoken(TEXT), TEXT)
    assert [caption.lines for caption in found] == [
        ("Dr. Smith paid $5.50 on Monday,", '3/4/2024, for "two" books.'),
        ("Then he (slowly) went home; nobody saw", "him on the long road to the village."),
        ("Hi. Yes. No. 今天天气很好。",),
    ]


def test_words_of_one_number_are_one() -> None:
    words = [Word("five", 0.0, 0.3, 0, 2), Word("dollars", 0.3, 0.7, 0, 2)]
    (caption,) = captions([*words, Word("each", 0.8, 1.2, 3, 7)], "$5 each!")
    assert caption.lines == ("$5 each!",)
    assert (caption.start, caption.end) == (0.0, 1.2)


@pytest.mark.parametrize("seed", range(40))
def test_the_rules_hold(seed: int) -> None:
    draw = random.Random(seed)
    marks = ["", "", "", "", ",", ".", "?", ";", " [pause 1500ms]", "\n\n"]
    words = [*"aI", "the", "house", "internationalisation", "Wörter", "12,345", "¿qué?", "(never)"]
    text = " ".join(draw.choice(words) + draw.choice(marks) for _ in range(draw.randint(1, 300)))
    said = spoken(text, draw)
    found = captions(said, text)
    shown = "".join("".join(caption.lines) for caption in found)
    written = re.sub(r"\[pause[^]]*\]", "", text)
    assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", written)
    for caption in found:
        assert 1 <= len(caption.lines) <= 2
        assert max(map(len, caption.lines)) <= LINE
        assert 0 < caption.end - caption.start <= LONGEST
    for before, after in pairwise(found):
        assert before.end <= after.start + 1e-9
        # No shorter than the rule wants, unless what follows it comes sooner.
        assert before.end - before.start >= SHORTEST - 1e-9 or before.end == after.start
    short = [c for c in found if c.end - c.start < SHORTEST - 1e-9]
    assert len(short) <= 0.02 * len(found)


def test_words_longer_than_a_line_and_a_caption_are_cut() -> None:
    text = "x" * 100
    (caption,) = captions([Word(text, 0.0, 9.0, 0, 100)], text)
    assert [len(line) for line in caption.lines] == [42, 42, 16]
    assert caption.end == LONGEST


def test_files_are_read_by_others(tmp_path: Path) -> None:
    text = TEXT.replace("Hi.", "Is 1 < 2 & 3 --> 4?")
    words = spoken(text)
    expected = captions(words, text)
    starts = [caption.start for caption in expected]
    for kind in ("srt", "vtt"):
        file = tmp_path / f"a.{kind}"
        file.write_text(caption_file(kind, words, text), "utf-8")
        read = webvtt.read(str(file)) if kind == "vtt" else webvtt.from_srt(str(file))
        assert [[html.unescape(line) for line in c.lines] for c in read] == [
            [line.replace("-->", "→") for line in c.lines] for c in expected
        ]
        assert [c.start.replace(",", ".")[-6:] for c in read] == [
            f"{start:06.3f}" for start in starts
        ]
        with av.open(str(file)) as container:  # ffmpeg's own reader
            shown = [
                packet.pts * packet.time_base
                for packet in container.demux(subtitles=0)
                if packet.size
            ]
        assert [float(time) for time in shown] == pytest.approx(starts)


def test_speech_without_word_times_has_no_captions() -> None:
    with pytest.raises(nightingale.Error, match="word times"):
        caption_file("srt", [])


def test_the_command_line_writes_both(
    tts: nightingale.TTS, checkpoint: Path, device: str, tmp_path: Path
) -> None:
    text = "Glue the 2 sheets."
    model = ["--model", str(checkpoint), "--device", device]
    options = ["--seed", "1", "--max-tokens", "60", "--steps", "1"]
    files = ["-o", tmp_path / "a.wav", "--srt", tmp_path / "a.srt", "--vtt", tmp_path / "a.vtt"]
    assert cli.main(["say", text, *map(str, files), *options, *model]) == 0
    audio = tts.generate(text, seed=1, max_tokens=60, steps=1)
    assert (tmp_path / "a.srt").read_text("utf-8") == audio.to_srt()
    assert (tmp_path / "a.vtt").read_text("utf-8") == audio.to_vtt()
    assert "Glue the 2" in audio.to_srt()


def test_a_model_whose_files_name_no_heads_has_captions_too(
    checkpoints: Path, tmp_path: Path
) -> None:
    model = ["--model", str(checkpoints / "english"), "--max-tokens", "12", "--steps", "1"]
    files = ["-o", str(tmp_path / "a.wav"), "--srt", str(tmp_path / "a.srt")]
    assert cli.main(["say", "Hello.", *files, *model]) == 0
    assert "Hello." in (tmp_path / "a.srt").read_text("utf-8")
    assert names_in(tmp_path) == ["a.srt", "a.wav"]
