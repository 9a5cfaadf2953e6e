from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from train import speech_tokenizer  # noqa: E402
from train.alignment import IGNORED  # noqa: E402
from train.augmentation import mel_of_other_speaker  # noqa: E402
from train.ctc_text import ctc_collapse, to_letters  # noqa: E402
from train.data import Corpus, Row, load_tokens  # noqa: E402
from train.features import mel_16k, resample_16k  # noqa: E402
from train.metrics import edit_distance  # noqa: E402
from train.networks.speech_tokenizer import (  # noqa: E402
    SpeechTokenizer,
    TokenizerSize,
    digit_embeddings,
    quantize,
    token_ids,
)
from train.networks.tokenizer_heads import code_usage, level_usage  # noqa: E402
from train.pitch_salience import HIGHEST, LOWEST, PITCHES, salience  # noqa: E402
from train.speakers import SIZES, Speakers  # noqa: E402
from train.speech_tokenizer import (  # noqa: E402
    ROW_LABELS,
    encode_speech,
    encode_without_repeats,
    load_tokenizer,
    without_repeats,
)
from train.state import load_stage, save_stage  # noqa: E402
from train.tokenizer_objective import (  # noqa: E402
    Transcripts,
    phoneme_loss,
    run_lengths,
    tokenizer_inputs,
)

from .baking import PROMPT_TOKENS, baker_of, lively, row, speech  # noqa: E402

EQUAL_TOKENS = 0.999


@pytest.fixture(scope="module")
def folder(tiny_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny corpus, a tokenizer trained on it for a moment, and the corpus's tokens."""
    folder = tmp_path_factory.mktemp("tokenizer")
    (folder / "corpus").symlink_to(tiny_corpus)
    train(folder, "--steps", "24")
    speech_tokenizer.main(
        f"tokenize {folder}/corpus {folder}/speech_tokenizer.safetensors {folder}/tokens.npz "
        "--device cpu --batch-seconds 20".split()
    )
    return folder


def test_initial_digits_use_all_levels(tiny_corpus: Path) -> None:
    torch.manual_seed(0)
    corpus = Corpus(tiny_corpus, "cpu")
    batch = next(corpus.batches(20.0, 0))
    inputs = tokenizer_inputs(batch.wave, batch.samples)
    tokenizer = SpeechTokenizer(TokenizerSize(width=64, layers=1))
    with torch.no_grad():
        # As after unlucky steps: every digit is at an end, where its gradient vanishes.
        tokenizer.quantizer._codebook.project_down.bias.fill_(9.0)
        tokenizer.spread(*inputs)
        code = tokenizer(*inputs)
    levels = code.digits[code.mask].round()
    for level in (-1, 0, 1):
        assert (levels == level).float().mean(0).min() > 0.1


def train(folder: Path, *options: str) -> dict:
    """→ the facts of what was saved"""
    fixed = ["--size", "tiny", "--device", "cpu", "--batch-seconds", "4", "--minutes", "1000"]
    speech_tokenizer.main([str(folder / "corpus"), str(folder), *fixed, *options])
    return json.loads((folder / "speech_tokenizer.json").read_text())


def baked_share(folder: Path, tokenizer: SpeechTokenizer) -> float:
    """The share of the baker's tokens of three recordings that are also PyTorch's."""
    baker = baker_of(folder, tokenizer, Speakers(SIZES["tiny"]))
    equal = []
    for first in (0, 12, 30):
        samples = speech(11.0, first)
        at_16k = resample_16k(torch.from_numpy(samples)[None])[0].numpy()
        voice = baker.bake(samples, at_16k, PROMPT_TOKENS)
        (prompt,) = encode_speech(tokenizer, *row(samples[:240_000]))
        assert len(voice["prompt_token"]) == 250
        equal.append(voice["prompt_token"] == prompt.numpy())
        with torch.inference_mode():
            opening = mel_16k(torch.from_numpy(at_16k[:96_000])[None])
            code = tokenizer(opening, torch.tensor([600]))
        assert len(voice["cond_prompt_speech_tokens"]) == PROMPT_TOKENS
        equal.append(voice["cond_prompt_speech_tokens"] == token_ids(code.digits)[0].numpy())
    return float(np.concatenate(equal).mean())


def test_random_weights_give_the_baker_s_tokens(tmp_path: Path) -> None:
    torch.manual_seed(0)
    tokenizer = lively(SpeechTokenizer(TokenizerSize(width=128, layers=2)))
    (tokens,) = encode_speech(tokenizer, *row(speech(10.0)))
    assert len(set(tokens.tolist())) > 100
    assert baked_share(tmp_path, tokenizer) >= EQUAL_TOKENS


def test_trained_weights_give_the_baker_s_tokens(folder: Path, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(folder / "speech_tokenizer.safetensors")
    assert baked_share(tmp_path, tokenizer) >= EQUAL_TOKENS


def test_training_learns_and_resumes(folder: Path, tmp_path: Path) -> None:
    history = json.loads((folder / "speech_tokenizer.json").read_text())["history"]
    assert history[-1]["mel_l1"] < history[0]["mel_l1"]
    assert history[-1]["pitch"] < history[0]["pitch"]
    assert history[-1]["text"] < 0.8 * history[0]["text"]
    assert history[-1]["phonemes"] < 0.9 * history[0]["phonemes"]
    again = tmp_path / "again"
    again.mkdir()
    (again / "corpus").symlink_to(folder / "corpus")
    resumed = train(again, "--steps", "1", "--resume", str(folder / "speech_tokenizer.safetensors"))
    assert resumed["history"][0]["mel"] < history[0]["mel"]


def test_new_heads_are_trained_alone_at_first(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "corpus").symlink_to(folder / "corpus")
    for suffix in (".safetensors", ".json"):
        name = f"speech_tokenizer{suffix}"
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    weights = tmp_path / "speech_tokenizer.safetensors"
    before, _ = load_stage(weights)

    def has_learned() -> bool:
        return any(not torch.equal(x, before[name]) for name, x in load_stage(weights)[0].items())

    monkeypatch.setattr(speech_tokenizer, "HEADS_ONLY", 0.99)
    train(tmp_path, "--steps", "2", "--resume", str(weights))
    assert not has_learned()
    # Now they lie beside.
    train(tmp_path, "--steps", "2", "--resume", str(weights))
    assert has_learned()


@pytest.mark.parametrize("kind", ["voices", "letters", "phonemes"])
def test_heads_resume_with_known_rows(folder: Path, tmp_path: Path, kind: str) -> None:
    tensors, facts = load_stage(folder / "speech_tokenizer_heads.safetensors")
    tables = {name: tensors[name] for name, of in ROW_LABELS.items() if of == kind}
    for name, table in tables.items():
        tensors[name] = torch.stack([*table[1:].flip(0), torch.full_like(table[0], 9)])
    facts[kind] = [*reversed(facts[kind][1:]), "something else"]
    save_stage(tmp_path, "speech_tokenizer_heads", tensors, facts)
    for suffix in (".safetensors", ".json"):
        name = f"speech_tokenizer{suffix}"
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    resumed = str(tmp_path / "speech_tokenizer.safetensors")
    options = {"corpus": folder / "corpus", "resume": resumed, "size": "tiny", "seed": 5}
    options["bfloat16"] = False
    found = speech_tokenizer.Stage(argparse.Namespace(**options, device="cpu")).heads.state_dict()
    for name, tensor in found.items():
        if name in tables:
            assert torch.equal(tensor[1:], tables[name][1:])
            assert not torch.equal(tensor[0], tables[name][0])
        else:
            assert torch.equal(tensor, tensors[name])


def test_the_tokens_of_a_corpus_are_in_its_order(folder: Path) -> None:
    tokens = load_tokens(folder / "tokens.npz")
    whole = Corpus(folder / "corpus", "cpu", "all")
    assert len(tokens) == len(whole.rows)
    tokenizer = load_tokenizer(folder / "speech_tokenizer.safetensors")
    for number in (0, 7, 61):
        assert len(tokens[number]) == whole.rows[number].samples // 960
        batch = whole.row_batch([number])
        (alone,) = encode_without_repeats(tokenizer, batch.wave, batch.samples)
        assert (tokens[number] != alone).sum() <= 2  # one may be on the edge, and move the next
        assert (tokens[number][1:] != tokens[number][:-1]).all()


def test_a_repeated_token_has_its_least_certain_digit_changed() -> None:
    digits = torch.tensor([0.9, -0.9, 0.05, 0.8, -0.2, 0.45, -0.55, 0.1]).repeat(1, 5, 1)
    digits[0, 3, 5] = 0.55  # as the one before it came to be said
    plain = token_ids(digits)[0].tolist()
    said = without_repeats(digits)[0].tolist()
    assert plain[0] == plain[1] == plain[2] == plain[4]
    assert said[0] == plain[0]
    assert said[1] == plain[0] + 3**5  # 0.45 to 1
    assert said[2] == plain[0]
    assert said[3] == plain[3] == plain[0] + 3**5
    assert said[4] == plain[0]
    three = without_repeats(torch.stack([digits[0, 0], digits[0, 0], digits[0, 3]])[None])
    assert three[0, 1] == plain[3]
    assert three[0, 2] == plain[0]  # which is the way it nearly went
    drawn = 0.999 * torch.tanh(2 * torch.randn(4, 300, 8, generator=torch.manual_seed(0)))
    drawn[:, ::3] = drawn[:, 1::3]
    said = without_repeats(drawn)
    assert (said[:, 1:] != said[:, :-1]).all()
    assert ((said >= 0) & (said < 6561)).all()
    assert (said != token_ids(drawn)).float().mean() < 0.4


def test_results_do_not_depend_on_padding() -> None:
    torch.manual_seed(1)
    tokenizer = lively(SpeechTokenizer(TokenizerSize(width=64, layers=2)))
    wave = torch.from_numpy(np.stack([speech(3.0), speech(3.0, 5)]))
    samples = torch.tensor([72_000, 43_210])
    wave[1, 43_210:] = 0
    with torch.inference_mode():
        together = tokenizer(*tokenizer_inputs(wave, samples))
        alone = tokenizer(*tokenizer_inputs(wave[1:, :43_210], samples[1:]))
    assert together.mask.sum(1).tolist() == [75, 45]
    difference = together.digits[1, :45] - alone.digits[0]
    assert difference.abs().max() < 1e-4


def test_digits_count_from_the_least_and_pass_gradients() -> None:
    assert token_ids(torch.full((8,), -0.9)) == 0
    assert token_ids(torch.full((8,), 0.9)) == 6560
    assert token_ids(torch.tensor([0.9, -0.9, -0.9, -0.9, -0.9, -0.9, -0.9, 0.2])) == 2 + 3**7
    digits = torch.tensor([0.4, -0.7], requires_grad=True)
    rounded = quantize(digits)
    assert rounded.tolist() == [0.0, -1.0]
    rounded.sum().backward()
    assert digits.grad.tolist() == [1.0, 1.0]


def test_initial_embeddings_are_as_similar_as_their_digits() -> None:
    torch.manual_seed(0)
    table = digit_embeddings(256)
    assert abs(table.std() - 1) < 0.02
    one, all_digits = 3**4, 6560  # ids that differ so from 0
    near, far = (torch.cosine_similarity(table[0], table[i], 0) for i in (one, all_digits))
    assert near > 0.8
    assert abs(far) < 0.2


def test_the_mel_of_another_speaker_keeps_the_times() -> None:
    samples = torch.tensor([48_000])
    wave = torch.zeros(1, 48_000)
    tone = torch.sin(2 * math.pi * 1000 * torch.arange(6000) / 24000)
    wave[0, 30_000:36_000] = 0.3 * tone  # from 1.25 s to 1.5 s
    generator = torch.Generator().manual_seed(3)
    plain, _ = tokenizer_inputs(wave, samples)
    for _ in range(4):
        other = mel_of_other_speaker(wave, samples, generator)
        assert other.shape == plain.shape
        loud = other[0].amax(1) > other[0].amax() - 0.2
        assert loud.nonzero()[0].item() == pytest.approx(125, abs=3)


def test_salience_is_strongest_at_the_pitch() -> None:
    time = torch.arange(16_000) / 16000
    for hz in (90.0, 160.0, 310.0):
        harmonics = sum(torch.sin(2 * math.pi * hz * k * time) / k for k in range(1, 9))
        found = salience(0.1 * harmonics[None])[0, 5:45].mean(0).argmax().item()
        expected = (PITCHES - 1) * math.log(hz / HIGHEST) / math.log(LOWEST / HIGHEST)
        assert found == pytest.approx(expected, abs=0.6)


def test_phoneme_labels_match_the_durations() -> None:
    """A frame of the teacher's has 25 ms; a token has 40 and two labels."""
    rows = [
        Row("a", "Oh.", "en", "v", 6 * 960, "oʊ", [2, 2, 2, 4]),
        Row("b", "Ah.", "en", "v", 3 * 960, "a", None),
    ]
    transcripts = Transcripts(rows, "cpu")
    silence, o, u = (transcripts.phonemes.inventory.index(sign) for sign in " oʊ")
    said = transcripts.phonemes_of(torch.tensor([1, 0]), 7)
    assert said[0].tolist() == [IGNORED] * 14
    assert said[1].tolist() == [silence] * 2 + [o] * 3 + [u] * 2 + [silence] * 5 + [IGNORED] * 2
    assert transcripts.is_sound(said).sum(1).tolist() == [0, 5]


def test_no_phoneme_is_too_short_for_a_label() -> None:
    durations = [3, *([1] * 8), 3]  # 25 ms each
    row = Row("a", "Abc.", "en", "v", 9 * 960, "abcdefgh", durations)
    transcripts = Transcripts([row], "cpu")
    labels = transcripts.phonemes_of(torch.tensor([0]), 9)[0].tolist()
    assert {transcripts.phonemes.inventory[label] for label in labels} == set(" abcdefgh")


def test_short_phonemes_weigh_more_per_frame() -> None:
    labels = torch.tensor([[3, 3, 3, 3, 1, 2, 2, 2, 2, IGNORED]])
    assert run_lengths(labels).tolist() == [[4, 4, 4, 4, 1, 4, 4, 4, 4, 1]]
    logits = torch.zeros(1, 10, 5)
    assert phoneme_loss(logits, labels).item() == pytest.approx(math.log(5))
    logits[0, 4, 1] = 50.0  # the short one is certain
    assert phoneme_loss(logits, labels).item() == pytest.approx(4 / 5 * math.log(5))


def test_code_usage_is_the_entropy_of_the_tokens() -> None:
    """Of eight digits, also where each digit uses its levels equally often."""
    generator = torch.Generator().manual_seed(0)
    digits = torch.randint(-1, 2, (1, 200_000, 8), generator=generator).float()
    mask = torch.ones(1, 200_000, dtype=torch.bool)
    assert code_usage(digits, mask).item() == pytest.approx(1, abs=0.01)
    equal = digits[..., :1].expand(-1, -1, 8)
    assert level_usage(equal, mask).min() > 0.8
    assert code_usage(equal, mask).item() == pytest.approx(1 / 8, abs=0.01)
    mask[0, 100:] = False
    few = code_usage(digits, mask).item()
    assert few == pytest.approx(math.log(100) / math.log(6561), abs=0.01)
    between = torch.full((1, 4, 8), 0.45, requires_grad=True)
    code_usage(between, torch.ones(1, 4, dtype=torch.bool)).backward()
    assert (between.grad > 0).all(), "digits move towards the edge, to use both levels"


def test_texts_are_spelled_in_letters() -> None:
    assert to_letters("¿Dónde vive Ana, l\u2019amie?") == "dónde vive ana l'amie"
    assert ctc_collapse([0, 3, 3, 0, 3, 5, 5, 0]) == [3, 3, 5]
    assert edit_distance([1, 2, 3], [1, 3, 4]) == 2
