"""The draft's training: any T3 is read, what is learned is what the core draws, and it is taken."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import nightingale  # noqa: E402
from nightingale import checkpoint  # noqa: E402
from nightingale.quantization import write_folder  # noqa: E402
from nightingale.text.tokenizer import Tokenizer  # noqa: E402
from tools.synthetic import write_checkpoint  # noqa: E402
from train import draft, t3  # noqa: E402
from train.data import Corpus, load_tokens, part_of  # noqa: E402
from train.draft_examples import Texts  # noqa: E402
from train.draft_narrowing import narrowed, principal_directions  # noqa: E402
from train.draft_objective import (  # noqa: E402
    distillation_loss,
    draws_agree,
    guided_logits,
    seen_before,
    spoken_places,
    tokens_a_round,
)
from train.draft_student import begun_from, usual_layers  # noqa: E402
from train.networks.t3 import SIZES, STOP_SPEECH, T3  # noqa: E402
from train.state import load_stage  # noqa: E402
from train.t3_checkpoint import ENGLISH, FAMILIES, MULTILINGUAL, load_checkpoint  # noqa: E402
from train.t3_examples import Examples, SpokenRow, T3Batch  # noqa: E402
from train.text_tokenizer import TextTokenizer, tokenizer_json  # noqa: E402

T3_FILE = "t3_mtl23ls_v2.safetensors"
TOKENIZER = "grapheme_mtl_merged_expanded_v1.json"
CPU = ("--device", "cpu", "--minutes", "1000")


@pytest.fixture(scope="module")
def model(spoken_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny T3 that has learned a little."""
    out, folder = tmp_path_factory.mktemp("stages"), tmp_path_factory.mktemp("model")
    stored = [f"--{name}={spoken_corpus / name}.npz" for name in ("tokens", "speakers")]
    given = ["--size", "tiny", "--positions", "512", "--steps", "40", "--learning-rate", "3e-3"]
    t3.Stage(t3.parse([str(spoken_corpus), str(out), *stored, *given, *CPU])).run()
    shutil.copy(out / "t3.safetensors", folder / T3_FILE)
    (folder / TOKENIZER).write_text(json.dumps(tokenizer_json()))
    heads = [list(head) for head in SIZES["tiny"].alignment_heads]
    settings = {"analyser": False, "alignment_heads": heads, "repetition_penalty": 1.3}
    (folder / "nightingale.json").write_text(json.dumps({"t3": settings}))
    return folder


@pytest.fixture(scope="module")
def spoken(model: Path, spoken_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the model says itself."""
    path = tmp_path_factory.mktemp("said") / "spoken.npz"
    draft.main(["speak", str(model), str(spoken_corpus), str(path), "--rows", "16", *CPU])
    return path


@pytest.fixture(scope="module")
def trained(
    model: Path, spoken_corpus: Path, spoken: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("draft")
    train(model, spoken_corpus, out, "--tokens", str(spoken_corpus / "tokens.npz"), str(spoken))
    return out


def train(model: Path, corpus: Path, out: Path, *options: str) -> list[dict[str, float]]:
    """→ the history of the run"""
    given = ["--layers", "1", "--steps", "20", "--positions", "1024", "--learning-rate", "2e-3"]
    draft.main([str(model), str(corpus), str(out), *given, *CPU, *options])
    return load_stage(out / T3_FILE)[1]["history"]


@pytest.mark.parametrize("family", ["multilingual", "english"])
def test_any_t3_of_a_folder_gives_the_cores_logits(family: str, tmp_path: Path) -> None:
    write_checkpoint(tmp_path, model=family)
    tts = nightingale.load(tmp_path, device="cpu")
    found = load_checkpoint(tmp_path)
    assert found.repetition_penalty == pytest.approx(tts.info["t3"]["repetition_penalty"])
    rng = np.random.default_rng(0)
    voice = tts._voice(None)
    text, speech = rng.integers(2, 200, 20), rng.integers(0, 6561, 15)
    core = tts.t3_logits(text.astype(np.int32), np.append(6561, speech).astype(np.int32), voice)
    expected = core[0] + 0.5 * (core[0] - core[1])
    batch = one_row(found.model, text, speech, voice)
    guided = guided_logits(found.model, batch, spoken_places(batch), 0.5)
    assert guided.std() > 0.5
    np.testing.assert_allclose(guided, expected, atol=2e-3)


def one_row(model: T3, text: np.ndarray, speech: np.ndarray, voice: nightingale.Voice) -> T3Batch:
    """A batch of one utterance in a voice."""
    count = len(speech)
    row = SpokenRow(
        text=np.append(2, text), starts=np.zeros(len(text) + 1, np.float32), speech=speech,
        phonemes=np.zeros(count, np.int16), begin=0.0, end=float(count), last_word=0, trust=0.0,
        tag=None, voice="a",
    )  # fmt: skip
    examples = Examples([row], voice.speaker_emb[None], model.size, 0, varied=False)
    batch = examples.collate([examples.example(0)], np.random.default_rng(0))
    prompt = torch.from_numpy(voice.cond_prompt_speech_tokens).long().reshape(1, -1)
    return replace(
        batch,
        speaker=torch.from_numpy(voice.speaker_emb).reshape(1, -1),
        emotion=torch.tensor([voice.emotion_adv]).float().reshape(1),
        prompt=prompt,
        prompt_counts=torch.tensor([prompt.shape[1]]),
    )


def test_folders_are_read_as_nightingale_reads_them(tmp_path: Path) -> None:
    for family in checkpoint.FAMILIES:
        known = MULTILINGUAL if family.multilingual else ENGLISH
        assert known["tokenizer"] == family.tokenizer
        assert [FAMILIES[Path(name).stem] is known for name in family.t3] == [True, True]
    assert len(FAMILIES) == len(checkpoint.FAMILIES)
    write_checkpoint(tmp_path, model="english")
    theirs = Tokenizer(tmp_path / "tokenizer.json", {"en": "English"}, multilingual=False)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    ours = TextTokenizer(content, multilingual=False)
    for text in ("It's fine; isn't it?", "An “odd” one - Yes"):
        assert ours.encode([text])[0].tolist() == theirs.encode(text).tolist()
    assert ours.tag("en") is None
    assert (ours.reads("en"), ours.reads("fr")) == (True, False)


def test_the_penalty_knows_what_was_said_before() -> None:
    targets = torch.tensor([[7, 9, 7, STOP_SPEECH], [3, STOP_SPEECH, -100, -100]])
    seen = seen_before(targets, torch.tensor([0, 1, 2, 3, 4, 5]), STOP_SPEECH + 1)
    sounds = [set(row.nonzero().flatten().tolist()) - {6561} for row in seen]
    assert sounds == [set(), {7}, {7, 9}, {7, 9}, set(), {3}]
    assert seen[:, 6561].all()


def test_draws_agree_as_often_as_shared_noise_makes_them() -> None:
    chances = torch.zeros(2, STOP_SPEECH + 1)
    chances[0, :3] = torch.tensor([0.6, 0.3, 0.1])
    chances[1, :3] = torch.tensor([0.2, 0.5, 0.3])
    p, q = chances[:, :3].double()
    expected = sum(1 / torch.maximum(p / p[i], q / q[i]).sum() for i in range(3))
    teacher, other = chances.log().clamp_min(-60).expand(4000, 2, -1).unbind(1)
    generator = torch.Generator().manual_seed(0)
    found = draws_agree(teacher, other, 0.0, generator).float().mean()
    assert found == pytest.approx(float(expected), abs=0.03)
    assert draws_agree(teacher, teacher, 0.05, generator).all()
    stop = torch.full((1, STOP_SPEECH + 1), -60.0)
    stop[0, STOP_SPEECH] = 0.0
    assert not draws_agree(stop, stop, 0.05, generator).any()


def test_the_loss_is_nothing_where_the_same_is_drawn() -> None:
    chances = torch.randn(5, 40).log_softmax(-1)
    kept = chances.masked_fill(chances < chances.amax(-1, True) + np.log(0.05), -60).log_softmax(-1)
    assert distillation_loss(chances, kept, 0.05) == pytest.approx(0.0, abs=1e-5)
    assert distillation_loss(chances, chances.roll(1, -1), 0.05) > 0.1


def test_a_pass_gives_what_was_right_and_one_more() -> None:
    right = np.array([True, True, False, True, False, False, True])
    assert tokens_a_round([right], 1) == pytest.approx(7 / 5)  # 2 1 2 1 1
    assert tokens_a_round([right], 3) == pytest.approx(7 / 4)  # 3 2 1 1
    assert tokens_a_round([right[:2], right[5:]], 7) == pytest.approx(4 / 3)  # 2, 1 1


def test_a_draft_begins_as_layers_of_its_model(model: Path) -> None:
    teacher = load_checkpoint(model).model
    whole, part = begun_from(teacher, 3, 192), begun_from(teacher, 2, 64)
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, teacher.state_dict()[name])
    ours, theirs = part.tfmr.layers[1], teacher.tfmr.layers[2]
    assert torch.equal(ours.self_attn.q_proj.weight, theirs.self_attn.q_proj.weight)
    heaviest = part.tfmr.layers[0].mlp.down_proj.weight[:, 0]
    columns = teacher.tfmr.layers[0].mlp.down_proj.weight.T
    assert sum(torch.equal(heaviest, column) for column in columns) == 1
    assert (usual_layers(30), usual_layers(8), usual_layers(3)) == (6, 2, 1)
    for layers, ffn in ((4, 192), (1, 193), (0, 1)):
        with pytest.raises(SystemExit, match="none of a model that has 3 of 192"):
            begun_from(teacher, layers, ffn)


def test_in_all_its_directions_a_model_is_the_same(model: Path, spoken_corpus: Path) -> None:
    found = load_checkpoint(model)
    texts = Texts(spoken_corpus, found, spoken_corpus / "speakers.npz")
    speech = texts.speech(spoken_corpus / "tokens.npz", "valid")
    examples = texts.examples([speech], varied=False)
    batch = examples.collate(
        [examples.example(place) for place in range(4)], np.random.default_rng(0)
    )
    directions = principal_directions(found.model, batch, 128)
    torch.testing.assert_close(directions.T @ directions, torch.eye(128), atol=1e-4, rtol=0)
    # Without a prompt, which a norm that does not turn would hear.
    batch = replace(batch, prompt=None, prompt_counts=None)
    spoken = spoken_places(batch)
    expected = guided_logits(found.model, batch, spoken, 0.5)
    same = guided_logits(narrowed(found.model, directions), batch, spoken, 0.5)
    torch.testing.assert_close(same, expected, atol=1e-3, rtol=0)
    half = guided_logits(narrowed(found.model, directions[:, 64:]), batch, spoken, 0.5)
    other = guided_logits(narrowed(found.model, directions[:, :64]), batch, spoken, 0.5)
    distance, worse = ((x - expected).square().mean() for x in (half, other))
    assert distance < 0.8 * worse


def test_a_narrow_draft_learns_and_is_taken(
    model: Path, spoken_corpus: Path, spoken: Path, tmp_path: Path
) -> None:
    history = train(model, spoken_corpus, tmp_path, "--hidden", "64", "--tokens", str(spoken))
    assert history[-1]["loss"] < 0.7 * history[0]["loss"]
    tts = nightingale.load(model, draft=tmp_path, device="cpu")
    assert tts._engine.drafts._model.describe()["hidden"] == 64
    for hidden in ("96", "192"):
        with pytest.raises(SystemExit, match=f"draft of {hidden} channels is none of a model"):
            train(model, spoken_corpus, tmp_path, "--hidden", hidden)


def test_the_model_says_rows_of_the_corpus_to_their_end(spoken: Path, spoken_corpus: Path) -> None:
    rows, said = Corpus(spoken_corpus, "cpu").rows, load_tokens(spoken)
    with np.load(spoken) as stored:
        known = stored["spoken"]
    assert [len(said[row]) > 0 for row in range(len(rows))] == known.tolist()
    assert known.sum() > 50
    parts = {part_of(rows[number].id, rows[number].voice) for number in np.flatnonzero(known)}
    assert parts == {"train", "valid"}
    assert max(int(said[int(row)].max()) for row in np.flatnonzero(known)) < 6561


def test_a_draft_learns_and_speaks_for_its_model(
    model: Path, trained: Path, spoken_corpus: Path
) -> None:
    tensors, facts = load_stage(trained / T3_FILE)
    first, last = facts["history"][0], facts["history"][-1]
    assert last["loss"] < 0.5 * first["loss"]
    assert facts["sampling"]["repetition_penalty"] == 1.3
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}

    plain = nightingale.load(model, device="cpu")
    drafted = nightingale.load(model, draft=trained, device="cpu")
    found = load_checkpoint(model)
    texts = Texts(spoken_corpus, found, spoken_corpus / "speakers.npz")
    speech = texts.speech(spoken_corpus / "tokens.npz", "valid")
    rules = {"cfg_weight": 0.5, "temperature": 0.8, "min_p": 0.05, "top_p": 1.0}
    rules |= {"repetition_penalty": 1.3, "max_tokens": 60}
    counts = {"proposed": 0, "accepted": 0}
    for number, row in enumerate(speech.rows):
        speaker = speech.speakers[number] / np.linalg.norm(speech.speakers[number])
        voice = nightingale.Voice(speaker, row.speech.astype(np.int32), emotion_adv=0.5)
        text = np.append(row.tag, row.text[1:]).astype(np.int32)
        for seed in range(4):
            told = [
                tts._engine.speak(text, voice, 0.5, seed=seed, **rules, **more)
                for tts, more in ((plain, {}), (drafted, {"proposals": 1}))
            ]
            expected, said = (list(iter(each.next, None)) for each in told)
            assert said == expected
            for name in counts:
                counts[name] += told[1].speculation[name]
    assert counts["proposed"] > 200
    # Shared draws agree as often in the core as training says they do.
    assert counts["accepted"] / counts["proposed"] == pytest.approx(last["accepted"], abs=0.12)


def test_a_draft_goes_on_from_its_weights(
    model: Path, trained: Path, spoken_corpus: Path, spoken: Path, tmp_path: Path
) -> None:
    before = load_stage(trained / T3_FILE)[1]["history"][-1]["loss"]
    again = ["--steps", "1", "--resume", str(trained / T3_FILE), "--tokens", str(spoken)]
    assert train(model, spoken_corpus, tmp_path, *again)[0]["loss"] < 1.1 * before


def test_what_cannot_be_learned_from_is_refused(
    model: Path, spoken_corpus: Path, tmp_path: Path
) -> None:
    empty, no_tokenizer, codes = (tmp_path / name for name in ("empty", "bare", "codes"))
    for folder in (empty, no_tokenizer):
        folder.mkdir()
    shutil.copy(model / T3_FILE, no_tokenizer)
    write_checkpoint(tmp_path / "whole")
    write_folder(checkpoint.find_checkpoint(tmp_path / "whole"), codes, 8)
    for folder, told in (
        (empty, "has no T3"),
        (no_tokenizer, "but not its tokenizer"),
        (codes, "has codes in place of some weights"),
    ):
        with pytest.raises(SystemExit, match=told):
            train(folder, spoken_corpus, tmp_path / "out")
    np.savez(tmp_path / "other.npz", starts=[0, 1], tokens=np.int16([1]), speaker=np.ones((1, 9)))
    with pytest.raises(SystemExit, match="expected the corpus's 120"):
        train(model, spoken_corpus, tmp_path / "out", "--tokens", str(tmp_path / "other.npz"))
    with pytest.raises(SystemExit, match=r"has speakers \(1, 9\); expected \(120, 256\)"):
        train(model, spoken_corpus, tmp_path / "out", "--speakers", str(tmp_path / "other.npz"))
