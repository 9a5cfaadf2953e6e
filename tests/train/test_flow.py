"""The flow: parity of PyTorch and the core, examples, and training of both phases."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors.numpy import load_file  # noqa: E402

import nightingale  # noqa: E402
from nightingale.safetensors_writer import write_safetensors  # noqa: E402
from tools.synthetic import write_checkpoint  # noqa: E402
from train import (  # noqa: E402
    data,
    flow,
    flow_examples,
    flow_validation,
    phoneme_classifier,
    speakers,
    speech_tokenizer,
)
from train.data import Corpus  # noqa: E402
from train.flow_examples import (  # noqa: E402
    LOOKAHEAD,
    Example,
    Speech,
    gather,
    load_speech,
    sample_example,
    truncate,
    validation_examples,
)
from train.meanflow import (  # noqa: E402
    EDGE,
    Distillation,
    before_cut,
    integrate_teacher,
    phoneme_loss,
)
from train.mel_adversary import WARM_UP, MelAdversary  # noqa: E402
from train.networks.flow import FLOW_SIZES, Flow, FlowSize  # noqa: E402
from train.networks.phoneme_classifier import PHONEME_CLASSIFIER_SIZES, PhonemeClassifier  # noqa: E402
from train.state import load_stage, save_stage  # noqa: E402

BOUND = 5e-4  # of mels whose values go from -15 to 8, after ten steps in float32
# The weights that tools.synthetic makes, at which every part of the model matters.
SYNTHETIC = FlowSize(
    encoder=128,
    encoder_ffn=256,
    encoder_layers=2,
    upper_layers=2,
    channels=64,
    heads=2,
    ffn=256,
    blocks=2,
    mid_levels=2,
    time_channels=256,
)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """A synthetic English checkpoint with a flow and one with a meanflow."""
    folders = {}
    for meanflow in (False, True):
        folders[meanflow] = tmp_path_factory.mktemp("checkpoint") / "files"
        write_checkpoint(folders[meanflow], model="english", meanflow=meanflow)
    return folders


def s3gen_file(folder: Path) -> Path:
    return next(folder.glob("s3gen*.safetensors"))


def torch_mel(
    network: Flow, voice: nightingale.Voice, tokens: np.ndarray, noise: np.ndarray, steps: int
) -> np.ndarray:
    """As tts.mel: [80, frames]"""
    prompt = torch.from_numpy(np.asarray(voice.prompt_feat))
    given = torch.zeros(1, noise.shape[1], 80)
    given[0, : len(prompt)] = prompt
    all_tokens = torch.from_numpy(np.concatenate([voice.prompt_token, tokens])).long()[None]
    with torch.no_grad():
        mel = network.mel(
            all_tokens,
            torch.tensor([all_tokens.shape[1]]),
            torch.from_numpy(np.asarray(voice.embedding))[None],
            given,
            torch.from_numpy(noise.T)[None],
            steps,
        )
    return mel[0, len(prompt) :].T.numpy()


def assert_same_mels(folder: Path, network: Flow) -> None:
    tts = nightingale.load(folder, device="cpu")
    whole = tts._voice(None)
    rng = np.random.default_rng(1)
    for count, prompt, finalize, steps in ((20, 30, True, 10), (9, 0, True, 3), (7, 25, False, 2)):
        voice = nightingale.Voice(
            whole.speaker_emb,
            prompt_token=whole.prompt_token[:prompt],
            prompt_feat=whole.prompt_feat[: 2 * prompt],
            embedding=whole.embedding,
        )
        tokens = rng.integers(0, 6561, count)
        frames = 2 * (prompt + count) - (0 if finalize else 6)
        noise = rng.standard_normal((80, frames), dtype=np.float32)
        expected = tts.mel(tokens, voice, steps=steps, noise=noise, finalize=finalize)
        found = torch_mel(network, voice, tokens, noise, steps)
        assert found.shape == expected.shape
        assert expected.std() > 0.5
        assert np.abs(found - expected).max() <= BOUND


@pytest.mark.parametrize("meanflow", [False, True])
def test_pytorch_matches_the_core_on_synthetic_weights(
    checkpoints: dict[bool, Path], meanflow: bool
) -> None:
    """Synthetic weights, read by both."""
    network = Flow(SYNTHETIC, meanflow)
    tensors = load_file(s3gen_file(checkpoints[meanflow]))
    network.load_official({name: torch.from_numpy(x) for name, x in tensors.items()})
    assert_same_mels(checkpoints[meanflow], network)


@pytest.mark.parametrize("meanflow", [False, True])
def test_the_core_matches_pytorch_on_exported_weights(
    checkpoints: dict[bool, Path], meanflow: bool, tmp_path: Path
) -> None:
    """A tiny flow's own tensors in place of the checkpoint's, as an export would put them."""
    torch.manual_seed(3)
    network = Flow(FLOW_SIZES["tiny"], meanflow)
    network.init_from_mean(torch.linspace(-4, -8, 80))
    folder = tmp_path / "files"
    folder.mkdir()
    for file in checkpoints[meanflow].iterdir():
        (folder / file.name).symlink_to(file)
    path = s3gen_file(folder)
    others = {name: x for name, x in load_file(path).items() if not name.startswith("flow.")}
    path.unlink()
    own = {name: x.numpy() for name, x in network.official_tensors().items()}
    write_safetensors(path, {**others, **own})
    assert_same_mels(folder, network)


def test_results_do_not_depend_on_padding() -> None:
    torch.manual_seed(4)
    network = Flow(FLOW_SIZES["tiny"])
    counts = torch.tensor([9, 14, 4])
    tokens = torch.randint(6561, (3, 14))
    x_vector, noise = torch.randn(3, 192), torch.randn(3, 28, 80)
    prompt = torch.randn(3, 28, 80)
    with torch.no_grad():
        together = network.mel(tokens, counts, x_vector, prompt, noise, 2)
        for i, count in enumerate(counts.tolist()):
            frames = slice(0, 2 * count)
            alone = network.mel(
                tokens[i : i + 1, :count],
                counts[i : i + 1],
                x_vector[i : i + 1],
                prompt[i : i + 1, frames],
                noise[i : i + 1, frames],
                2,
            )
            torch.testing.assert_close(together[i, frames], alone[0], atol=1e-5, rtol=0)


@pytest.fixture(scope="module")
def models(tiny_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The synthetic corpus, with tokens and vectors of untrained encoders."""
    corpus, models = tiny_corpus, tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    size = speech_tokenizer.TOKENIZER_SIZES["tiny"]
    tokenizer = speech_tokenizer.SpeechTokenizer(size).state_dict()
    tensors = {speech_tokenizer.PREFIX + name: x for name, x in tokenizer.items()}
    path = save_stage(models, speech_tokenizer.STAGE, tensors, dataclasses.asdict(size))
    small = ["--device", "cpu", "--batch-seconds", "20"]
    speech_tokenizer.main(["tokenize", str(corpus), str(path), str(models / "tokens.npz"), *small])
    size = speakers.SIZES["tiny"]
    tensors = speakers.Speakers(size).tensors()
    path = save_stage(models, speakers.STAGE, tensors, dataclasses.asdict(size))
    speakers.main(["embed", str(corpus), str(path), str(models / "speakers.npz"), *small])
    return corpus, models


@pytest.fixture(scope="module")
def speech(models: tuple[Path, Path]) -> Speech:
    """Training data with speed-perturbed rows."""
    return load_speech(Corpus(models[0], "cpu"), models[1], perturb_speed=True, seed=0)


def test_every_token_has_its_two_frames(models: tuple[Path, Path], speech: Speech) -> None:
    tokens, frames, bands = speech.mel.shape
    assert (frames, bands) == (2, 80)
    assert len(speech.tokens) == tokens == speech.starts[-1]
    assert len(speech.x_vector) == len(speech) == len(speech.starts) - 1
    natural = load_speech(Corpus(models[0], "cpu"), models[1], perturb_speed=False, seed=0)
    assert 1.2 * len(natural) < len(speech) < 1.6 * len(natural)
    assert len(speech.rows_of) > len(natural.rows_of)


def test_examples_are_a_prompt_and_a_sentence(speech: Speech) -> None:
    rng = random.Random(0)
    drawn = [sample_example(speech, rng.randrange(len(speech)), rng) for _ in range(500)]
    joined = [example for example in drawn if len(example.ranges) > 1]
    assert 0.3 < len(joined) / 500 < 0.5
    for example in joined:
        before = sum(end - begin for begin, end in example.ranges[:-1])
        assert example.prompt == 2 * before
    assert 0.15 < sum(example.prompt == 0 for example in drawn) / 500 < 0.4
    assert 0.15 < sum(example.ahead == LOOKAHEAD for example in drawn) / 500 < 0.4
    for example in drawn:
        assert example.prompt <= 2 * (example.tokens - example.ahead)


def test_a_batch_concatenates_the_ranges(speech: Speech) -> None:
    first, second = Example(((5, 9), (20, 27)), 3, 8, 2), Example(((40, 43),), 0, 0, 1)
    batch = gather(speech, [first, second])
    assert batch.counts.tolist() == [11, 3]
    assert batch.frames.tolist() == [16, 6]
    assert batch.tokens[0].tolist() == [*speech.tokens[5:9], *speech.tokens[20:27]]
    assert batch.frame_mask.sum(1).tolist() == [16, 6]
    torch.testing.assert_close(batch.mel[0, 8:10], speech.mel[20].float(), atol=0, rtol=0)
    torch.testing.assert_close(batch.prompt_mel[0, :8], batch.mel[0, :8], atol=0, rtol=0)
    assert not batch.prompt_mel[0, 8:].any()
    torch.testing.assert_close(batch.x_vector, speech.x_vector[[2, 1]].float(), atol=0, rtol=0)


def test_truncated_rows_are_encoded_as_in_a_stream(speech: Speech) -> None:
    network = Flow(FLOW_SIZES["tiny"]).eval()
    batch = gather(speech, [Example(((5, 45),), 0, 17, 2), Example(((40, 50),), 0, 0, 1)])
    for place, count in ((0.0, 9 + 8 + 7), (0.5, 32), (0.999, 40), (1.0, 40)):
        part = truncate(batch, torch.full((2,), place))
        assert part.counts.tolist() == [count, 10]  # the second is too short
        assert part.frames.tolist() == [2 * (count - LOOKAHEAD), 20]
        assert part.prompt.tolist() == [17, 0]
        with torch.no_grad():
            found = network.encode(part.tokens, part.counts)[0, : 2 * count]
            alone = network.encode(batch.tokens[:1, :count], torch.tensor([count]))[0]
        torch.testing.assert_close(found, alone)


def test_half_of_the_rows_are_truncated_in_distillation(speech: Speech) -> None:
    network = Flow(FLOW_SIZES["tiny"], meanflow=True)
    distillation = Distillation(network, Flow(FLOW_SIZES["tiny"]), 0, "cpu")
    batch = gather(speech, [Example(((0, 60),), 0, 0, 0)] * 200)
    shown = distillation.truncate_some(batch)
    whole = shown.frames == 120
    assert 0.35 < whole.float().mean() < 0.65
    assert (shown.counts[whole] == 60).all()
    assert (shown.frames[~whole] == 2 * (shown.counts[~whole] - LOOKAHEAD)).all()


def test_frames_before_a_cut_have_more_weight(speech: Speech) -> None:
    batch = gather(speech, [Example(((0, 60),), 0, 0, 0)] * 2)
    shown = dataclasses.replace(batch, frames=torch.tensor([80, 120]))
    weight = before_cut(batch, shown) * shown.frame_mask
    assert weight[0].nonzero().flatten().tolist() == list(range(80 - EDGE, 80))
    assert not weight[1].any()


def test_the_phoneme_loss_ignores_the_prompt(speech: Speech) -> None:
    torch.manual_seed(0)
    network = PhonemeClassifier(PHONEME_CLASSIFIER_SIZES["tiny"], 9).eval()
    batch = gather(speech, [Example(((0, 60),), 0, 60, 0)])
    assert phoneme_loss(network, batch.mel, batch) < 1e-6
    other = batch.mel.clone()
    other[:, :30] += 2  # outside of the receptive field
    assert phoneme_loss(network, other, batch) < 1e-6
    other[:, 90:] += 2
    assert phoneme_loss(network, other, batch) > 0.05


def test_the_phoneme_loss_trains_the_estimator(speech: Speech) -> None:
    """Only the estimator learns; the loss falls for the same noise."""
    torch.manual_seed(0)
    student, teacher = Flow(FLOW_SIZES["tiny"], meanflow=True), Flow(FLOW_SIZES["tiny"])
    for network in (student, teacher):
        network.init_from_mean(speech.mean_mel())
    classifier = PhonemeClassifier(PHONEME_CLASSIFIER_SIZES["tiny"], 9).eval()
    batch = gather(speech, validation_examples(speech, 4, 1.0, seed=0))
    optimizer = torch.optim.Adam(student.estimator.parameters(), 1e-3)
    found = []
    for _ in range(8):
        loss = Distillation(student, teacher, 0, "cpu", classifier, 1.0).losses(batch, 1.0)[
            "phonemes"
        ]
        found.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert found[-1] < 0.9 * found[0]
    assert all(x.grad is None for network in (classifier, teacher) for x in network.parameters())
    assert all(x.grad is None for x in student.encoder.parameters())


def test_the_adversary_tells_blurred_mels_from_true_ones(speech: Speech) -> None:
    torch.manual_seed(0)
    adversary = MelAdversary(0.5, "cpu", channels=8)
    batch = gather(speech, validation_examples(speech, 4, 1.0, seed=0))
    blurred = batch.mel.clone()
    blurred[..., 1:-1] = (batch.mel[..., :-2] + batch.mel[..., 1:-1] + batch.mel[..., 2:]) / 3
    blurred.requires_grad_()
    expected = batch.mel.mean(1, keepdim=True).expand_as(batch.mel)
    beside = (blurred - batch.mel).square().mean()
    found = [adversary.losses(blurred, expected, batch, beside) for _ in range(WARM_UP + 30)]
    assert "adversarial" not in found[WARM_UP - 1], "at first only the discriminator learns"
    assert found[-1]["discriminator"] < 0.7 * found[0]["discriminator"]

    last = found[-1]["adversarial"]
    own, other = (torch.autograd.grad(x, blurred, retain_graph=True)[0] for x in (last, beside))
    assert own.norm() == pytest.approx(0.5 * other.norm().item(), rel=1e-3)
    assert not own[batch.prompt_mask].any(), "the prompt is not made"
    assert not own[~batch.frame_mask].any()


def test_integrating_the_teacher_gives_its_solution(speech: Speech) -> None:
    """From 0 to 1 in its own steps."""
    torch.manual_seed(0)
    network = Flow(FLOW_SIZES["tiny"])
    batch = gather(speech, validation_examples(speech, 2, 1.0, seed=0))
    noise = torch.randn_like(batch.mel)
    with torch.no_grad():
        mean = network.encode(batch.tokens, batch.counts)
        conditioning = network.conditioning(mean, batch.x_vector, batch.prompt_mel)
        zero, one = torch.zeros(2), torch.ones(2)
        found = integrate_teacher(network, noise, conditioning, batch.frame_mask, zero, one)
        torch.testing.assert_close(found, network.solve(noise, conditioning, batch.frame_mask, 6))


def test_distilled_steps_are_mostly_half_steps(speech: Speech) -> None:
    network = Flow(FLOW_SIZES["tiny"], meanflow=True)
    t, r = Distillation(network, Flow(FLOW_SIZES["tiny"]), 0, "cpu").draw_steps(2000)
    assert (r - t).min() >= 0.049
    assert t.min() >= 0
    assert r.max() <= 1 + 1e-6
    halves = ((r - t - 0.5).abs() < 1e-6) & ((t == 0) | (t == 0.5))
    assert 0.5 < halves.float().mean() < 0.7


def test_both_phases_learn_and_resume(
    models: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, folder = models
    monkeypatch.setattr(flow_validation, "EXAMPLES", 6)
    monkeypatch.setattr(flow_examples, "PREPARE_SECONDS", 20.0)

    def run(*options: str) -> list[dict]:
        common = [
            "--models",
            str(folder),
            "--device",
            "cpu",
            "--size",
            "tiny",
            "--batch-seconds",
            "12",
        ]
        common += ["--minutes", "1000"]
        flow.main([str(corpus), str(tmp_path), *common, *options])
        name = "meanflow" if "--meanflow" in options else "flow"
        return json.loads((tmp_path / f"{name}.json").read_text())["history"]

    plain = run("--steps", "60")
    assert plain[-1]["valid"]["loss"] < 0.95 * plain[0]["valid"]["loss"]
    assert plain[-1]["valid"]["l1-4"] < plain[0]["valid"]["l1-4"]
    tensors, facts = load_stage(tmp_path / "flow.safetensors")
    assert all(x.dtype == torch.float16 and x.isfinite().all() for x in tensors.values())
    assert facts["steps"] == 61
    further = run("--steps", "3", "--resume", str(tmp_path / "flow.safetensors"))
    assert further[0]["valid"]["loss"] < 1.1 * plain[-1]["valid"]["loss"]

    mean = run("--steps", "10", "--meanflow", str(tmp_path / "flow.safetensors"))
    assert mean[-1]["valid"]["teacher-2"] < mean[0]["valid"]["teacher-2"]
    assert flow.load_flow(tmp_path / "meanflow.safetensors").meanflow

    small = ["--device", "cpu", "--size", "tiny", "--batch-seconds", "12", "--steps", "20"]
    phoneme_classifier.main([str(corpus), str(tmp_path), *small])
    led = run(
        *("--steps", "10", "--phoneme-weight", "10", "--adversarial-share", "0.5"),
        *("--phoneme-classifier", str(tmp_path / "phoneme_classifier.safetensors")),
        *("--meanflow", str(tmp_path / "flow.safetensors")),
        *("--resume", str(tmp_path / "meanflow.safetensors")),
    )
    assert "phonemes" not in led[0]["train"], "the loss starts later"
    assert led[-1]["train"]["phonemes"] > 0
    assert led[-1]["train"]["discriminator"] > 0
    assert 0 < led[-1]["valid"]["phonemes-2"] <= 1

    assert "unseen" in plain[-1]
    monkeypatch.setattr(data, "HELD_OUT_VOICES", ())
    assert "unseen" not in run("--steps", "1")[-1], "none of the corpus is held out"


def test_an_untrained_flow_predicts_the_mean_minus_the_noise() -> None:
    torch.manual_seed(0)
    flow = Flow(FLOW_SIZES["small"])
    mean = torch.linspace(-8, -2, 80)
    flow.init_from_mean(mean)
    noise, frame_mask = torch.randn(2, 50, 80), torch.ones(2, 50, dtype=torch.bool)
    conditioning = torch.cat([mean + torch.randn(2, 50, 80), torch.zeros(2, 50, 160)], -1)
    with torch.no_grad():
        velocity = flow.velocity(noise, conditioning, frame_mask, torch.zeros(2))
    assert (velocity - (mean - noise)).square().mean() < 0.4  # 1, if it kept the noise
    assert -(velocity * noise).mean() == pytest.approx(1, abs=0.1)
