"""T3: parity with the core, examples, and training."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import nightingale  # noqa: E402
from nightingale.safetensors_writer import write_safetensors  # noqa: E402
from nightingale.text.tokenizer import Tokenizer  # noqa: E402
from tools.synthetic import T3_SIZES, t3_weights  # noqa: E402
from train import t3  # noqa: E402
from train.alignment import PhonemeVocabulary, align_text, track_alignment, word_starts  # noqa: E402
from train.data import Corpus, load_tokens  # noqa: E402
from train.networks.t3 import SIZES, STOP_SPEECH, T3, gather_positions, pack_rows, text_attention  # noqa: E402
from train.state import load_stage  # noqa: E402
from train.t3 import T3WithPhonemeHead, alignment_loss, word_errors  # noqa: E402
from train.t3_examples import (  # noqa: E402
    EMOTION,
    LEAD,
    TAIL,
    Examples,
    SpokenRow,
    emotion_of_rate,
    spoken_rows,
)
from train.t3_generation import Sampling, generate  # noqa: E402
from train.text_tokenizer import LANGUAGES, SPACE, UNKNOWN, TextTokenizer, tokenizer_json  # noqa: E402

SIZE = SIZES["tiny"]
FAMILY = ("t3_mtl23ls_v2.safetensors", "grapheme_mtl_merged_expanded_v1.json")
PARITY = 1e-3  # of logits with a deviation of 1, in float32

SENTENCES = (
    ("en", 'She said: "It\'s (not) mine…" - and left'),
    ("en", "forty-two, O'Brien; naïve façade!"),
    ("es", "¿Dónde está el niño, mañana o ayer?"),
    ("fr", "L'œuvre où ça va — être, haïr, Noël."),
    ("it", "Perché no? È già così: più tardi…"),
    ("pt", "Não, as ações são à mão; você vê?"),
)


@pytest.fixture(scope="module")
def model() -> T3:
    """Random weights, large enough that every part of the network shows in the logits."""
    torch.manual_seed(0)
    model = T3(SIZE).eval().requires_grad_(False)
    for weight in model.parameters():
        weight.mul_(4 if weight.ndim > 1 else 1).add_(0.05 * torch.randn_like(weight))
    return model


@pytest.fixture(scope="module")
def tts(model: T3, tmp_path_factory: pytest.TempPathFactory) -> nightingale.TTS:
    """The core with the same weights."""
    folder = tmp_path_factory.mktemp("t3")
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    write_safetensors(folder / FAMILY[0], weights)
    (folder / FAMILY[1]).write_text(json.dumps(tokenizer_json()))
    heads = [list(head) for head in SIZE.alignment_heads]
    settings = {"t3": {"analyser": True, "alignment_heads": heads}}
    (folder / "nightingale.json").write_text(json.dumps(settings))
    return nightingale.load(folder, device="cpu")


@pytest.fixture(scope="module")
def voice() -> nightingale.Voice:
    rng = np.random.default_rng(1)
    speaker = rng.random(256).astype(np.float32)
    prompt = rng.integers(0, 6561, 90).astype(np.int32)
    return nightingale.Voice(speaker / np.linalg.norm(speaker), prompt, emotion_adv=0.7)


@pytest.fixture(scope="module")
def rows(spoken_corpus: Path) -> list[SpokenRow]:
    found = Corpus(spoken_corpus, "cpu", "valid").rows
    tokens = load_tokens(spoken_corpus / "tokens.npz")
    return spoken_rows(found, range(len(found)), tokens, PhonemeVocabulary(found))


def examples_of(rows: list[SpokenRow], augment: bool) -> Examples:
    return Examples(rows, np.ones((len(rows), 256), np.float32), SIZE, 0, augment)


def logits_of(
    model: T3, text: np.ndarray, speech: np.ndarray, voice: nightingale.Voice
) -> tuple[np.ndarray, np.ndarray]:
    """Logits of both guidance rows, and the text positions of the first."""
    layout = pack_rows(SIZE, [text, text], [speech, speech])
    tokens, positions, output_positions = map(
        torch.from_numpy, (layout.tokens, layout.positions, layout.output_positions)
    )
    speaker = torch.from_numpy(voice.speaker_emb)[None]
    prompt = counts = None
    if voice.cond_prompt_speech_tokens is not None:
        prompt = torch.from_numpy(voice.cond_prompt_speech_tokens)[None].long()
        counts = torch.tensor([prompt.shape[1]])
    condition = model.voice(speaker, torch.tensor([voice.emotion_adv]), prompt, counts)
    trace = model(
        condition.expand(2, -1, -1), model.embed(tokens, positions, torch.tensor([True, False]))
    )
    output_positions = output_positions + condition.shape[1]
    weights = (
        text_attention(trace, output_positions, condition.shape[1], len(text) + 2)[0].exp().mean(0)
    )
    return model.speech_head(
        gather_positions(trace.hidden, output_positions)
    ).numpy(), track_alignment(weights.numpy())


@pytest.mark.parametrize("prompted", [True, False])
def test_the_core_gives_the_same_logits(
    model: T3, tts: nightingale.TTS, voice: nightingale.Voice, prompted: bool
) -> None:
    rng = np.random.default_rng(2)
    text = rng.integers(2, 75, 40).astype(np.int32)
    speech = rng.integers(0, 6561, 60).astype(np.int32)
    if not prompted:
        voice = replace(voice, cond_prompt_speech_tokens=None)
    ours, _ = logits_of(model, text, speech, voice)
    core = tts.t3_logits(text, np.append(6561, speech), voice)
    assert ours.shape == core.shape == (2, 61, STOP_SPEECH + 1)
    assert ours.std() > 0.5
    assert np.abs(ours[0] - ours[1]).max() > 0.1
    np.testing.assert_allclose(ours, core, atol=PARITY)


def test_the_core_tracks_the_same_text_positions(
    model: T3, tts: nightingale.TTS, voice: nightingale.Voice
) -> None:
    text = tts.tokenize("The quick brown fox jumps over the lazy dog, and it runs.")
    options = nightingale.SpeechOptions(seed=3, max_tokens=40, repetition_penalty=1.2, min_p=0.0)
    speech = tts._engine.speak(text, voice, tts._resolved(options, voice))
    said, places = [], []
    while (token := tts._engine.next_token(speech)) is not None:
        said.append(token)
        places.append(speech.text_position)
    assert len(said) > 10
    _, followed = logits_of(model, text, np.array(said[:-1]), voice)
    assert followed.tolist() == places


def test_names_and_shapes_are_the_official_ones(model: T3) -> None:
    known = t3_weights(T3_SIZES["small"], SIZE.text_vocabulary)
    official = {name for name in known if "layers.3" not in name}
    ours = model.state_dict()
    assert official - set(ours) == {"text_head.weight", "tfmr.embed_tokens.weight"}
    assert set(ours) <= official
    assert all(ours[name].ndim == len(known[name].shape) for name in ours)


def test_text_is_tokenized_as_in_nightingale(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(tokenizer_json()))
    theirs = Tokenizer(path, {language: language for language in LANGUAGES}, multilingual=True)
    ours = TextTokenizer()
    for language, sentence in SENTENCES:
        (ids,) = ours.encode([sentence])
        assert UNKNOWN not in ids
        assert [ours.tag(language), *ids] == theirs.encode(sentence, language).tolist()
    (quoted,), (plain,) = ours.encode(['"Yes", (no).']), ours.encode(["Yes, no."])
    assert quoted.tolist() == plain.tolist()
    assert len(ours.encode(["é."])[0]) == 2


def test_letters_share_the_time_of_their_word() -> None:
    text = [SPACE, *TextTokenizer().encode(["No, Ann."])[0]]  # _no, _ann.
    is_space = np.array(text) == SPACE
    is_letter = TextTokenizer().is_letter[text]
    durations = [8, 4, 8, 16, 8, 8, 8, 4, 16]  # of 25 ms
    timing = align_text(is_space, is_letter, 50, "no, an.", durations)
    assert timing.timing_weight == 1
    assert (timing.begin, timing.end) == (5.0, 37.5)
    assert timing.starts.tolist() == [5, 7.5, 10, 12.5, 27.5, 30, 32.5, 35, 37.5]
    assert timing.last_word == 4


def test_words_that_do_not_match_are_only_guessed() -> None:
    text = [SPACE, *TextTokenizer().encode(["Qu'est-ce que tu dis?"])[0]]
    is_space, is_letter = np.array(text) == SPACE, TextTokenizer().is_letter[text]
    phonemes = "kɛskə ty di?"
    timing = align_text(is_space, is_letter, 30, phonemes, [4] * (len(phonemes) + 2))
    assert timing.timing_weight < 0.5
    assert (np.diff(timing.starts) > 0).all()
    assert align_text(is_space, is_letter, 30, phonemes, None).end == 30


def test_examples_begin_and_end_with_a_little_silence(rows: list[SpokenRow]) -> None:
    examples = examples_of(rows, augment=False)
    for place, row in enumerate(rows):
        example = examples.example(place)
        assert example.boundaries[2] <= LEAD + 1
        assert np.ptp(example.boundaries[-2:]) <= TAIL + 2
        # More than five speech tokens on one of the last text tokens make the analyser stop.
        assert np.diff(example.boundaries)[-3:].max() < 5
        assert len(example.boundaries) == len(example.text) + 3
        assert example.boundaries[-1] == len(example.speech) + 1 == len(example.phonemes)
        assert example.text[0] == row.tag


def test_joined_rows_are_concatenated(rows: list[SpokenRow]) -> None:
    examples = examples_of(rows, augment=True)
    rng = np.random.default_rng(0)
    joined = [examples.example(place, rng) for place in range(len(rows))]
    several = [example for example in joined if len(example.rows) > 1]
    assert len(several) > len(rows) // 5
    for example in several:
        parts = [rows[place] for place in example.rows]
        assert len({(part.voice, part.tag) for part in parts}) == 1
        assert len(example.text) == sum(len(part.text) for part in parts)  # a tag for a space
        assert (np.diff(example.boundaries) >= 0).all()


def test_logits_do_not_depend_on_padding(model: T3, rows: list[SpokenRow]) -> None:
    examples = examples_of(rows, augment=False)
    network = T3WithPhonemeHead(model, 30).eval()
    chosen = [examples.example(place) for place in (0, 1, 2, 5)]
    batch = examples.collate(chosen, np.random.default_rng(0))
    together = network(batch).logits
    for number, example in enumerate(chosen):
        alone = examples.collate([example], np.random.default_rng(0))
        same = {"speaker": batch.speaker[number, None], "prompt": batch.prompt[number, None]}
        same["prompt_counts"] = batch.prompt_counts[number, None]
        count = len(example.speech) + 1
        found = network(replace(alone, **same)).logits[0]
        torch.testing.assert_close(found, together[number, :count], atol=1e-4, rtol=0)
        assert batch.targets[number, count - 1] == STOP_SPEECH


def test_attention_on_the_teachers_times_has_the_smallest_loss(rows: list[SpokenRow]) -> None:
    examples = examples_of(rows, augment=False)
    chosen = [examples.example(place) for place in (1, 2, 13)]
    batch = examples.collate(chosen, np.random.default_rng(0))
    at = torch.arange(batch.targets.shape[1])[None, :, None]
    boundaries = batch.boundaries[:, None]
    share = torch.minimum(boundaries[..., 1:], at + 1) - torch.maximum(boundaries[..., :-1], at)
    weights = share.clamp_min(0)
    entropy = -(weights * weights.clamp_min(1e-9).log()).sum() / weights.sum()
    perfect = alignment_loss(weights.clamp_min(1e-9).log()[:, None], batch)
    torch.testing.assert_close(perfect, entropy)
    flat = torch.full_like(weights, 1 / weights.shape[-1]).log()[:, None]
    assert alignment_loss(flat, batch) > 2 * perfect
    errors = np.concatenate(word_errors(batch, weights.numpy()))
    assert np.median(errors) <= 0.5
    assert errors.max() <= 2


def test_words_are_reached_in_order() -> None:
    is_space = np.array([False, False, False, True, False, True, False, False])
    places = np.array([0, 0, 2, 2, 3, 2, 4, 5, 6, 7])
    assert word_starts(is_space, places).tolist() == [2, 4, 7]


def test_generation_and_training_have_the_same_logits(model: T3, rows: list[SpokenRow]) -> None:
    examples = examples_of(rows, augment=False)
    chosen = [examples.example(place) for place in (0, 1, 2)]
    batch = examples.collate(chosen, np.random.default_rng(0))
    coldest = Sampling(cfg_weight=0.0, repetition_penalty=1.0, temperature=1e-4)
    spoken = generate(model, batch, 12, coldest, torch.Generator().manual_seed(0))
    for number, (said, example) in enumerate(zip(spoken, chosen, strict=True)):
        voice = nightingale.Voice(
            batch.speaker[number].numpy(),
            batch.prompt[number, : batch.prompt_counts[number]].numpy(),
            emotion_adv=float(batch.emotion[number]),
        )
        logits, places = logits_of(model, example.text, said.tokens[:-1], voice)
        assert logits[0].argmax(-1).tolist() == said.tokens.tolist()
        assert places[-1] == said.text_position


@pytest.fixture(scope="module")
def run(spoken_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out")
    train(spoken_corpus, out, "--steps", "40", "--learning-rate", "3e-3")
    return out


def train(corpus: Path, out: Path, *options: str) -> None:
    stored = ["--tokens", str(corpus / "tokens.npz"), "--speakers", str(corpus / "speakers.npz")]
    sizes = ["--size", "tiny", "--batch-positions", "512", "--device", "cpu", "--minutes", "1000"]
    t3.main([str(corpus), str(out), *stored, *sizes, *options])


def test_the_stage_learns_and_saves_what_the_core_loads(run: Path) -> None:
    tensors, facts = load_stage(run / "t3.safetensors")
    assert facts["valid"]["loss"] < np.log(SIZE.speech_vocabulary) - 3
    assert facts["valid"]["line"] < 3.5
    assert facts["spoken"]["spoken"] == 10
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}
    write_safetensors(run / FAMILY[0], {name: value.numpy() for name, value in tensors.items()})
    (run / FAMILY[1]).write_bytes((run / "text_tokenizer.json").read_bytes())
    (run / "nightingale.json").write_text(json.dumps({"t3": facts["settings"]}))
    loaded = nightingale.load(run, device="cpu").info["t3"]
    assert (loaded["analyser"], loaded["dtype"]) == (True, "float16")
    assert loaded["repetition_penalty"] == pytest.approx(1.2)


def test_the_stage_resumes_from_its_weights(spoken_corpus: Path, run: Path, tmp_path: Path) -> None:
    """Weights that are worse than the resumed ones are only saved as t3_last."""
    before = load_stage(run / "t3.safetensors")[1]["valid"]["loss"]
    wildly = ["--steps", "2", "--learning-rate", "1"]
    train(spoken_corpus, tmp_path, *wildly, "--resume", str(run / "t3.safetensors"))
    tensors, facts = load_stage(tmp_path / "t3.safetensors")
    assert facts["valid"]["loss"] < before + 0.02  # that much float16 may cost
    last, _ = load_stage(tmp_path / "t3_last.safetensors")
    assert (last["speech_emb.weight"] - tensors["speech_emb.weight"]).abs().max() > 0.1


def test_the_stage_also_trains_on_a_corpus_without_audio(
    spoken_corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heard = tmp_path / "heard"
    heard.mkdir()
    for name in ("index.jsonl", "tokens.npz", "speakers.npz"):
        (heard / name).symlink_to(spoken_corpus / name)
    counts = []
    for also in ((), ("--extra-corpus", str(heard))):
        train(spoken_corpus, tmp_path, "--steps", "1", *also)
        words = capsys.readouterr().out.replace(",", "").split()
        counts.append([int(word) for word in words if word.isdigit()][:3])
    once, twice = np.array(counts)  # rows and tokens to train, rows to validate
    np.testing.assert_array_equal(twice, 2 * once)


def test_the_emotion_input_tells_the_speaking_rate(rows: list[SpokenRow]) -> None:
    rates = (0.5, 1.0, 2.0)
    varied = [replace(row, speed=rates[i % 3]) for i, row in enumerate(rows)]
    examples, rng = examples_of(varied, augment=True), np.random.default_rng(0)
    made = [examples.example(i % len(varied), rng) for i in range(300)]
    assert any(len(example.rows) > 1 for example in made)
    for example in made:
        assert {varied[row].speed for row in example.rows} == {example.speed}
    plain = examples_of(varied, augment=False)
    batch = plain.collate([plain.example(i) for i in range(3)], rng)
    expected = emotion_of_rate(np.array(rates))
    np.testing.assert_allclose(batch.emotion, expected, atol=1e-6)
    assert expected[0] < expected[1] == EMOTION < expected[2]
