from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from train import speakers  # noqa: E402
from train.data import Corpus  # noqa: E402
from train.features import resample_16k  # noqa: E402
from train.networks.speech_tokenizer import TOKENIZER_SIZES, SpeechTokenizer  # noqa: E402
from train.networks.voice_encoder import part_count  # noqa: E402
from train.networks.x_vector import Statistics  # noqa: E402
from train.schedule import Schedule  # noqa: E402
from train.speakers import SIZES, Speakers, embed, equal_error_rate, load_speakers  # noqa: E402

from .baking import PROMPT_TOKENS, baker_of, lively, row, speech  # noqa: E402

TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def folder(tiny_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny corpus, encoders trained on it for a moment, and the vectors of its rows."""
    folder = tmp_path_factory.mktemp("speakers")
    (folder / "corpus").symlink_to(tiny_corpus)
    train(folder, "--steps", "4")
    speakers.main(
        f"embed {folder}/corpus {folder}/speakers.safetensors {folder}/speakers.npz "
        "--device cpu --batch-seconds 20".split()
    )
    return folder


def train(folder: Path, *options: str) -> dict:
    """→ the facts of what was saved"""
    fixed = ["--size", "tiny", "--device", "cpu", "--batch-seconds", "16", "--minutes", "1000"]
    speakers.main([str(folder / "corpus"), str(folder), *fixed, *options])
    return json.loads((folder / "speakers.json").read_text())


def stage_of(folder: Path, **options: object) -> speakers.Stage:
    common = {"corpus": folder / "corpus", "device": "cpu", "bfloat16": False}
    options = {"size": "tiny", "seed": 0, "resume": None, **options}
    return speakers.Stage(argparse.Namespace(**common, **options))


def test_a_silent_channel_has_a_gradient() -> None:
    x = torch.zeros(2, 3, 50)
    x[:, 1] = torch.rand(2, 50)
    x.requires_grad_()
    found = Statistics()(x)
    found.square().sum().backward()
    assert torch.isfinite(x.grad).all()
    torch.testing.assert_close(found[:, 4, 0], x[:, 1].std(-1))


def assert_bakes_alike(folder: Path, networks: Speakers, tolerance: float = TOLERANCE) -> None:
    """The flow uses only the direction of an x-vector."""
    baker = baker_of(folder, SpeechTokenizer(TOKENIZER_SIZES["tiny"]), networks)
    for seconds, first in ((1.1, 2), (4.3, 9), (13.0, 20)):
        samples = speech(seconds, first)
        at_16k = resample_16k(torch.from_numpy(samples)[None])[0].numpy()
        voice = baker.bake(samples, at_16k, PROMPT_TOKENS)
        x_vector, _ = embed(networks, *row(samples[:240_000]))
        _, speaker = embed(networks, *row(samples))
        np.testing.assert_allclose(unit(x_vector[0]), unit(voice["embedding"]), atol=tolerance)
        np.testing.assert_allclose(speaker[0], voice["speaker_emb"], atol=tolerance)


def unit(x: np.ndarray) -> np.ndarray:
    return np.asarray(x) / np.linalg.norm(x)


def test_random_weights_give_the_baker_s_vectors(tmp_path: Path) -> None:
    torch.manual_seed(0)
    networks = lively(Speakers(SIZES["small"]), 2.0)
    assert_bakes_alike(tmp_path, networks)
    for one, other in zip(*(embed(networks, *row(speech(3.0, i))) for i in (0, 20)), strict=True):
        assert np.abs(unit(one[0]) - unit(other[0])).max() > 50 * TOLERANCE


def test_trained_weights_give_the_baker_s_vectors(folder: Path, tmp_path: Path) -> None:
    # A few steps leave weights that magnify how processors round.
    assert_bakes_alike(tmp_path, load_speakers(folder / "speakers.safetensors"), 10 * TOLERANCE)


def test_both_learn_to_classify_voices(folder: Path) -> None:
    stage = stage_of(folder, batch_seconds=26)
    wave, label = next(stage.augmented(0))
    assert wave.shape == (8, 41_600)
    parameters = [*stage.speakers.parameters(), *stage.heads.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=3e-3)
    history = []
    for _ in range(8):
        losses = stage.losses(wave, label, 0.0)
        optimizer.zero_grad()
        sum(losses.values()).backward()
        optimizer.step()
        history.append({name: loss.item() for name, loss in losses.items()})
    for name, first in history[0].items():
        assert history[-1][name] < 0.8 * first


def test_training_resumes(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "corpus").symlink_to(folder / "corpus")
    train(tmp_path, "--steps", "1", "--resume", str(folder / "speakers.safetensors"))
    before, after = (
        load_speakers(path / "speakers.safetensors").voice_encoder.state_dict()
        for path in (folder, tmp_path)
    )
    for name, tensor in before.items():  # one small step from there
        assert (after[name] - tensor).abs().max() < 3e-3


def test_the_vectors_of_a_corpus_are_in_its_order(folder: Path) -> None:
    whole = Corpus(folder / "corpus", "cpu", "all")
    networks = load_speakers(folder / "speakers.safetensors")
    with np.load(folder / "speakers.npz") as stored:
        x_vector, speaker = stored["x_vector"], stored["speaker"]
    assert x_vector.shape == (len(whole.rows), 192)
    assert speaker.shape == (len(whole.rows), 256)
    np.testing.assert_allclose(np.linalg.norm(speaker.astype(np.float32), axis=1), 1, atol=2e-3)
    longest = max(range(len(whole.rows)), key=lambda number: whole.rows[number].samples)
    batch = whole.row_batch([longest])
    alone, _ = embed(networks, batch.wave, batch.samples)
    np.testing.assert_allclose(x_vector[longest], alone[0], rtol=2e-3, atol=2e-3)


def test_batch_norms_are_saved_with_the_statistics_of_the_final_weights(
    folder: Path, tmp_path: Path
) -> None:
    """The mean over some batches of each norm's inputs."""
    stage = stage_of(
        folder, batch_seconds=16, steps=2, resume=folder / "speakers.safetensors", out=tmp_path
    )
    norms = {
        name: module
        for name, module in stage.speakers.x_vector.named_modules()
        if hasattr(module, "running_mean")
    }
    for norm in norms.values():
        norm.running_mean.fill_(7)
        norm.running_var.fill_(7)
    stage.save(Schedule(steps=2))
    saved = load_speakers(tmp_path / "speakers.safetensors").x_vector.state_dict()

    statistics: dict[str, list[Tensor]] = {name: [] for name in norms}
    for name, norm in norms.items():

        def listen(_: nn.Module, heard: tuple[Tensor], name: str = name) -> None:
            channels = heard[0].transpose(0, 1).flatten(1)
            statistics[name].append(torch.stack([channels.mean(1), channels.var(1)]))

        norm.register_forward_pre_hook(listen)
    stage.calibrate()
    for name, found in statistics.items():
        assert len(found) == 2
        mean, variance = torch.stack(found).mean(0)
        # As close as float16 has it.
        torch.testing.assert_close(saved[f"{name}.running_mean"], mean, rtol=2e-3, atol=1e-3)
        torch.testing.assert_close(saved[f"{name}.running_var"], variance, rtol=2e-3, atol=1e-3)


def test_a_last_part_counts_if_four_fifths_of_it_are_there() -> None:
    assert [part_count(frames) for frames in (1, 159, 160, 204, 205, 237)] == [1, 1, 1, 1, 2, 2]


def test_the_equal_error_rate_is_where_both_errors_meet() -> None:
    same, different = torch.tensor([0.9, 0.8, 0.7, 0.2]), torch.tensor([0.1, 0.3, 0.0, 0.75])
    assert equal_error_rate(same, different) == pytest.approx(0.25)
    assert equal_error_rate(torch.ones(5), torch.zeros(9)) == pytest.approx(0)
