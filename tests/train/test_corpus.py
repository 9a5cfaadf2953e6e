from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from train.clips import (  # noqa: E402
    cut_clip,
    cut_silence,
    read_index,
    speech_level,
)
from train.corpus import join, main, write_spoken, write_synthetic  # noqa: E402
from train.data import SPEED_FACTORS, Corpus, Tokens, load_tokens  # noqa: E402
from train.voices import HELD_OUT_VOICES  # noqa: E402

from .toy_teacher import write_teacher  # noqa: E402


@pytest.fixture(scope="module")
def corpus(tiny_corpus: Path) -> Corpus:
    return Corpus(tiny_corpus, "cpu")


def test_the_synthetic_corpus_is_deterministic(tiny_corpus: Path, tmp_path: Path) -> None:
    write_synthetic(tmp_path)
    assert (tmp_path / "index.jsonl").read_bytes() == (tiny_corpus / "index.jsonl").read_bytes()
    first, again = (np.load(folder / "audio-00000.npy") for folder in (tiny_corpus, tmp_path))
    np.testing.assert_array_equal(first, again)
    assert 110 < len(first) / 24000 < 150


def test_a_corpus_is_written_to_an_empty_folder_only(tmp_path: Path) -> None:
    empty, full, file = (tmp_path / name for name in ("empty", "full", "file"))
    for folder in (empty, full):
        folder.mkdir()
    for path in (full / "index.jsonl", file):
        path.write_text("")
    write_synthetic(empty)
    assert len(read_index(empty)) == 120
    for write in (
        write_synthetic,
        lambda out: write_spoken(tmp_path, tmp_path / "no", out, None, 1),
    ):
        with pytest.raises(SystemExit, match=r"full already holds index\.jsonl; name a new"):
            write(full)
        with pytest.raises(SystemExit, match="file is not a folder"):
            write(file)


def test_clips_are_whole_tokens_and_durations_fill_them(tiny_corpus: Path) -> None:
    for entry in read_index(tiny_corpus):
        assert entry["samples"] % 960 == 0
        assert len(entry["durations"]) == len(entry["phonemes"]) + 2
        assert 0 <= entry["samples"] - 600 * sum(entry["durations"]) < 960


def test_parts_share_out_the_rows(tiny_corpus: Path) -> None:
    parts = {name: Corpus(tiny_corpus, "cpu", name) for name in ("train", "valid", "unseen", "all")}
    members = {name: set(part.members.tolist()) for name, part in parts.items()}
    assert members["train"] | members["valid"] | members["unseen"] == members["all"]
    assert sum(len(members[name]) for name in ("train", "valid", "unseen")) == 120
    assert len(members["valid"]) == 10
    voices = {part: {parts[part].rows[row].voice for row in members[part]} for part in members}
    assert voices["unseen"] == {"af_jessica"}
    assert not voices["train"] & set(HELD_OUT_VOICES)
    assert all(part.voices == parts["all"].voices for part in parts.values())


def test_a_part_of_a_corpus_that_was_read_is_that_of_the_folder(
    corpus: Corpus, tiny_corpus: Path
) -> None:
    corpus.row_batch(corpus.members[:1])  # its sound is there already
    for part in ("valid", "unseen"):
        again, anew = corpus.part(part), Corpus(tiny_corpus, "cpu", part)
        assert again.members.tolist() == anew.members.tolist()
        assert again.hours == anew.hours
        found, expected = (each.row_batch(each.members).wave for each in (again, anew))
        assert torch.equal(found, expected)
    with pytest.raises(ValueError, match="expected one of train, valid, unseen, all"):
        corpus.part("test")


def test_a_row_is_given_as_it_is_stored(corpus: Corpus, tiny_corpus: Path) -> None:
    rows = corpus.members[[5, 40]]
    batch = corpus.row_batch(rows)
    stored = np.load(tiny_corpus / "audio-00000.npy")
    for i, row in enumerate(rows):
        entry = read_index(tiny_corpus)[row]
        sound = stored[entry["start"] : entry["start"] + entry["samples"]] / 32768
        assert batch.samples[i] == len(sound)
        np.testing.assert_allclose(batch.wave[i, : len(sound)], sound, rtol=0, atol=1e-7)
        assert not batch.wave[i, len(sound) :].any()
        assert batch.text[i] == entry["text"]
        assert batch.language[i] == entry["lang"][:2]
        assert corpus.voices[batch.voice[i]] == entry["voice"]
        assert corpus.rows[batch.row[i]].id == entry["id"]


def test_rows_of_another_part_are_refused(corpus: Corpus) -> None:
    (other,) = set(range(3, 4)) - set(corpus.members.tolist())
    with pytest.raises(ValueError, match="row 3 is not in this part"):
        corpus.row_batch([other])


def test_an_epoch_gives_every_row_once_in_batches_that_fit(corpus: Corpus) -> None:
    seen = []
    for batch in corpus.batches(8.0, seed=1):
        assert batch.wave.numel() <= 8.0 * 24000
        seen += batch.row.tolist()
        if len(seen) >= len(corpus.members):
            break
    assert sorted(seen) == sorted(corpus.members.tolist())


def test_rounded_lengths_make_few_shapes(corpus: Corpus) -> None:
    seen, shapes = [], []
    for batch in corpus.batches(8.0, seed=1, step=0.96):
        shapes.append(tuple(batch.wave.shape))
        for wave, samples, row in zip(batch.wave, batch.samples, batch.row, strict=True):
            assert torch.equal(wave[:samples], corpus.row_batch([int(row)]).wave[0])
            assert not wave[samples:].any()
        seen += batch.row.tolist()
        if len(seen) >= len(corpus.members):
            break
    assert sorted(seen) == sorted(corpus.members.tolist())
    assert all(length % 23040 == 0 and rows * length <= 8 * 24000 for rows, length in shapes)
    # One number of rows for each length, but for the shortest rows of the epoch.
    full = {(8 * 24000 // length, length) for _, length in shapes}
    assert sum(shape not in full for shape in shapes) <= 1
    with pytest.raises(ValueError, match=r"cannot hold a row of 9\.6 s"):
        next(corpus.batches(8.0, seed=0, step=9.6))


def test_batches_depend_on_the_seed_alone(corpus: Corpus) -> None:
    def rows(seed: int) -> list[list[int]]:
        batches = itertools.islice(corpus.batches(8.0, seed), 5)
        return [batch.row.tolist() for batch in batches]

    assert rows(1) == rows(1)
    assert rows(1) != rows(2)


def test_a_batch_too_small_for_a_row_is_refused(corpus: Corpus) -> None:
    with pytest.raises(ValueError, match="cannot hold a row"):
        next(corpus.batches(0.5, seed=0))


def test_windows_are_cut_out_of_rows(corpus: Corpus) -> None:
    batch = next(corpus.batches(16.0, seed=3, crop=0.5))
    assert batch.wave.shape == (32, 12000)
    for wave, samples, row in zip(batch.wave, batch.samples, batch.row, strict=True):
        whole = corpus.row_batch([int(row)]).wave[0]
        assert samples == min(12000, len(whole))
        assert not wave[samples:].any()
        assert wave[:samples].numpy().tobytes() in whole.numpy().tobytes()


def test_speed_perturbation_changes_pitch_length_and_voice(corpus: Corpus) -> None:
    batch = next(corpus.batches(8.0, seed=0))
    tone = torch.sin(2 * np.pi * 300 * torch.arange(batch.wave.shape[1]) / 24000)
    batch.wave[:] = tone
    batch.lengths[:] = len(tone)
    varied = corpus.perturb_speed(batch, torch.Generator().manual_seed(5))
    bucket = varied.voice % len(SPEED_FACTORS)
    assert (varied.voice // len(SPEED_FACTORS) == batch.voice).all()
    assert int(varied.voice.max()) < corpus.perturbed_voices
    assert len(set(bucket.tolist())) > 2
    for wave, samples, place in zip(varied.wave, varied.samples, bucket, strict=True):
        assert len(tone) / samples == pytest.approx(SPEED_FACTORS[place], rel=0.011)
        heard = wave[200 : samples - 200]
        crossings = int((heard[1:] * heard[:-1] < 0).sum())
        pitch = crossings / 2 / (len(heard) / 24000)
        assert pitch == pytest.approx(300 * len(tone) / int(samples), rel=0.01)
        assert float(heard.abs().max()) == pytest.approx(1.0, abs=0.02)
        assert not wave[samples:].any()


def test_tokens_are_looked_up_by_row(tmp_path: Path) -> None:
    np.savez(tmp_path / "tokens.npz", starts=[0, 2, 2, 5], tokens=np.int16([7, 8, 1, 2, 6560]))
    tokens = load_tokens(tmp_path / "tokens.npz")
    assert isinstance(tokens, Tokens)
    assert len(tokens) == 3
    assert tokens[2].tolist() == [1, 2, 6560]
    found, counts = tokens.batch(torch.tensor([2, 0, 1]))
    assert found.tolist() == [[1, 2, 6560], [7, 8, 0], [0, 0, 0]]
    assert counts.tolist() == [3, 2, 0]


def test_silence_is_cut_to_a_margin_and_durations_with_it() -> None:
    durations = [12, 4, 6, 20]  # of which the last is 10 frames of sound and 10 of silence
    sound = np.zeros(sum(durations) * 600)
    sound[12 * 600 : 32 * 600] = 0.3 * np.sin(np.arange(20 * 600) / 10)
    clip = np.round(32767 * sound).astype(np.int16)
    cut = cut_silence(clip, durations)
    assert cut.begin == 10 * 600
    assert (cut.end - cut.begin) % 960 == 0
    assert 0.13 <= (cut.end - 32 * 600) / 24000 < 0.18
    assert cut.durations[:3] == [2, 4, 6]
    assert 0 <= 600 * sum(cut.durations) - (cut.end - cut.begin) < 600


def test_a_clip_is_made_louder_but_never_clips() -> None:
    clip = np.round(3276 * np.sin(np.arange(9600) / 10)).astype(np.int16)
    cut = cut_silence(clip, [1, 14, 1])
    level = speech_level(clip)
    assert level == pytest.approx(-23.0, abs=0.1)
    assert speech_level(cut_clip(clip, cut, 6.0)) == pytest.approx(level + 6.0, abs=0.1)
    assert np.abs(cut_clip(clip, cut, 40.0)).max() == pytest.approx(0.95 * 32767, abs=1)


def test_the_teachers_speech_becomes_a_corpus(tmp_path: Path) -> None:
    teacher = write_teacher(tmp_path / "teacher")
    rows = [
        {"id": f"en-{n}", "lang": "en-us", "voice": voice, "speed": 1.0}
        | {"text": "A b c.", "phonemes": "abcabcabcabc" + "?" * (n == 5)}
        for n, voice in enumerate(["af_heart", "am_puck", "af_heart+am_puck"] * 4)
    ]
    rows[7]["phonemes"] = "Q" * 12  # the toy teacher draws this sign out
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    write_spoken(teacher, texts, tmp_path / "out", hours=None, processes=2)
    entries = {entry["id"]: entry for entry in read_index(tmp_path / "out")}
    assert set(entries) == {row["id"] for row in rows} - {"en-7"}
    assert entries["en-5"]["phonemes"] == "abcabcabcabc"  # "?" is not in the teacher's vocabulary
    corpus = Corpus(tmp_path / "out", "cpu", "all")
    levels = []
    for number, row in enumerate(corpus.rows):
        assert row.samples % 960 == 0
        assert row.durations[0] == 2
        sound = corpus.row_batch([number]).wave[0].numpy()
        levels.append(speech_level(np.round(32768 * sound).astype(np.int16)))
    assert np.ptp(levels) < 0.5  # the toy teacher's voices are 20 dB apart
    assert not list((tmp_path / "out").glob("raw*"))


def test_fewer_hours_take_the_beginning(tmp_path: Path) -> None:
    teacher = write_teacher(tmp_path / "teacher")
    texts = tmp_path / "texts.jsonl"
    row = {"lang": "en-us", "voice": "af_heart", "speed": 1.0, "text": "A.", "phonemes": "a" * 53}
    lines = [json.dumps(row | {"id": f"en-{n}"}) + "\n" for n in range(50)]
    texts.write_text("".join(lines), encoding="utf-8")
    first, second, both = (tmp_path / name for name in ("first", "second", "both"))
    write_spoken(teacher, texts, first, hours=30 / 3600, processes=1)
    assert {entry["id"] for entry in read_index(first)} == {f"en-{n}" for n in range(10)}
    write_spoken(teacher, texts, second, hours=18 / 3600, processes=1, skip_hours=30 / 3600)
    assert {entry["id"] for entry in read_index(second)} == {f"en-{n}" for n in range(10, 16)}
    with pytest.raises(SystemExit, match="has no text after 1 h"):
        write_spoken(teacher, texts, tmp_path / "none", hours=1, processes=1, skip_hours=1)
    main(["join", str(both), str(first), str(second)])
    joined = Corpus(both, "cpu", "all")
    parts = [Corpus(folder, "cpu", "all") for folder in (first, second)]
    assert [row.id for row in joined.rows] == [row.id for part in parts for row in part.rows]
    for part, offset in zip(parts, (0, 10), strict=True):
        expected = part.row_batch(part.members).wave
        assert torch.equal(joined.row_batch(part.members + offset).wave, expected)
    with pytest.raises(SystemExit, match="of an earlier corpus again"):
        join(tmp_path / "twice", [first, first])
