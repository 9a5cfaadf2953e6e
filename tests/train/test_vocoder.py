from __future__ import annotations

import json
import math
import wave
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
load_file = pytest.importorskip("safetensors.numpy").load_file

import nightingale  # noqa: E402
from nightingale.safetensors_writer import write_safetensors  # noqa: E402
from tools.synthetic import write_checkpoint  # noqa: E402
from train import vocoder  # noqa: E402
from train.data import Corpus  # noqa: E402
from train.f0 import estimate_f0  # noqa: E402
from train.features import mel_24k  # noqa: E402
from train.networks.discriminators import DISCRIMINATOR_SIZES, Discriminators  # noqa: E402
from train.networks.vocoder import VOCODER_SIZES, SnakeFunction, Vocoder, harmonics, rows  # noqa: E402
from train.state import write_npz  # noqa: E402
from train.training import parameter_count  # noqa: E402
from train.vocoder import load_vocoder  # noqa: E402
from train.vocoder_examples import CONTEXT, FRAMES, PrecomputedMels, windows  # noqa: E402
from train.vocoder_losses import (  # noqa: E402
    HighBandLoss,
    RelativeDifferences,
    SpectralLoss,
    discriminator_loss,
    feature_loss,
)

from .baking import speech  # noqa: E402

TOLERANCE = 1e-3  # of full scale


@pytest.fixture(scope="module")
def folder(tiny_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny corpus, and a vocoder trained on it for a moment."""
    folder = tmp_path_factory.mktemp("vocoder")
    (folder / "corpus").symlink_to(tiny_corpus)
    train(folder, folder, "--steps", "10")
    return folder


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole model in the official layout."""
    folder = tmp_path_factory.mktemp("checkpoint")
    write_checkpoint(folder, "small", "english")
    return folder


def train(folder: Path, out: Path, *options: str) -> dict:
    """→ the facts of what was saved"""
    fixed = ["--size", "tiny", "--device", "cpu", "--batch-windows", "2", "--minutes", "1000"]
    vocoder.main([str(folder / "corpus"), str(out), *fixed, *options])
    return json.loads((out / "vocoder.json").read_text())


def assert_sounds_alike(checkpoint: Path, network: Vocoder, mel: torch.Tensor) -> float:
    """Compares PyTorch and the core. mel: [T, 80] → the level of the audio"""
    path = checkpoint / "s3gen.safetensors"
    others = {name: x for name, x in load_file(path).items() if not name.startswith("mel2wav.")}
    own = {name: x.numpy() for name, x in network.official_tensors().items()}
    write_safetensors(path, {**others, **own})
    phase, noise = network.draw_inputs(1, len(mel), torch.Generator().manual_seed(3))
    with torch.inference_mode():
        expected = network.synthesize(mel[None], network.f0(mel[None]), phase, noise)[0].numpy()
    tts = nightingale.load(checkpoint, device="cpu")
    found = tts.vocode(mel.T.numpy(), phase=phase[0].numpy(), noise=noise[0].T.numpy())
    assert found.shape == (480 * len(mel),)
    np.testing.assert_allclose(found, expected, atol=TOLERANCE)
    return float(np.std(expected))


def test_random_weights_give_the_core_s_audio(checkpoint: Path) -> None:
    torch.manual_seed(0)
    network = Vocoder(VOCODER_SIZES["tiny"]).eval()
    for name, tensor in network.state_dict().items():
        if name.endswith("alpha"):
            tensor.uniform_(0.5, 1.5)
        elif name.endswith("original0"):
            tensor.mul_(1 + 0.2 * torch.randn_like(tensor))
        elif name == "conv_post.bias":
            tensor.add_(torch.tensor([4.2] * 9 + [0.4] * 9))
    mel = mel_24k(torch.from_numpy(speech(1.2, 3))[None])[0]
    network.init_from_mean(mel.mean(0))
    predictor = network.f0_predictor
    with torch.no_grad():
        predictor.classifier.weight.mul_(0.12)
        predictor.classifier.bias.fill_(220.0)
    f0 = network.f0(mel[None])
    assert f0.min() > 80
    assert f0.max() < 400
    assert f0.std() > 10
    assert assert_sounds_alike(checkpoint, network, mel) > 50 * TOLERANCE


def test_trained_weights_give_the_core_s_audio(checkpoint: Path, folder: Path) -> None:
    network = load_vocoder(folder / "vocoder.safetensors")
    mel = mel_24k(torch.from_numpy(speech(1.2, 5))[None])[0]
    assert assert_sounds_alike(checkpoint, network, mel) > TOLERANCE


def test_training_learns_and_resumes(folder: Path, tmp_path: Path) -> None:
    history = json.loads((folder / "vocoder.json").read_text())["history"]
    first, last = history[0], history[-1]
    assert last["spectrum"] < first["spectrum"]
    assert last["mel"] < first["mel"]
    assert last["f0"] < first["f0"]
    resumed = train(
        folder, tmp_path, "--steps", "1", "--resume", str(folder / "vocoder.safetensors")
    )
    again = resumed["history"][0]
    assert again["spectrum"] < first["spectrum"]
    # The discriminators go on at once.
    assert again["discriminators"] < 1.2 * last["discriminators"]
    assert again["adversarial"] > 0


def test_validation_writes_recorded_and_synthesized_audio(folder: Path) -> None:
    for name in ("true", "made"):
        with wave.open(str(folder / f"vocoder-{name}.wav")) as file:
            assert file.getframerate() == 24000
            assert file.getnframes() == 16 * 48000


def test_precomputed_mels_match_their_audio(folder: Path, tmp_path: Path) -> None:
    whole = Corpus(folder / "corpus", "cpu")
    rows = whole.members[:6]
    mels = [mel_24k(whole.row_batch([row]).wave)[0].numpy() for row in rows]
    starts = np.cumsum([0, *map(len, mels)])
    path = tmp_path / "mels.npz"
    write_npz(path, rows=rows, starts=starts, mels=np.concatenate(mels).astype(np.float16))
    given = next(PrecomputedMels(path, whole).windows(8, seed=0))
    assert given.mel.shape == (8, FRAMES + 2 * CONTEXT, 80)
    # Beyond the edges of a window the mel of its wave hears nothing of what was around it.
    alone = mel_24k(given.wave)
    np.testing.assert_allclose(given.mel[:, 2:-2], alone[:, 2:-2], atol=0.02)
    train(folder, tmp_path, "--steps", "1", "--mels", str(path))


def test_windows_are_of_one_length_with_their_pitch(folder: Path) -> None:
    given = next(windows(Corpus(folder / "corpus", "cpu"), 8, seed=0))
    frames = FRAMES + 2 * CONTEXT
    assert given.wave.shape == (8, 480 * frames)
    assert given.mel.shape == (8, frames, 80)
    voiced = given.f0[given.f0 > 0]
    assert len(voiced) > 50
    # The synthetic voices have 100 to 220 Hz; some rows have another speed.
    assert ((voiced > 85) & (voiced < 265)).float().mean() > 0.95


def test_f0_follows_a_glide_and_is_unvoiced_in_noise() -> None:
    time = torch.arange(48_000) / 24000
    for hz in (75.0, 120.0, 230.0, 420.0):
        pitch = hz * (1 + 0.1 * torch.sin(4 * math.pi * time))
        cycles = torch.cumsum(pitch.double() / 24000, 0)
        sound = sum(torch.sin(2 * math.pi * k * cycles) / k for k in range(1, int(8000 / hz)))
        found = estimate_f0(0.1 * sound[None].float())[0]
        error = (found - pitch[240::480]).abs() / pitch[240::480]
        assert error[2:-2].max() < 0.01
    noise = torch.randn(2, 48_000, generator=torch.Generator().manual_seed(0))
    assert estimate_f0(0.1 * noise).count_nonzero() == 0
    assert estimate_f0(1e-4 * noise).count_nonzero() == 0


def test_harmonics_keep_their_phase_for_minutes() -> None:
    frames, hz = 6000, 123.4
    phase = torch.linspace(0, 3, 9)[None]
    f0 = torch.full((1, frames), hz)
    made = harmonics(f0, phase, torch.zeros(1, 480 * frames, 9))[0, -480:]
    sample = torch.arange(480 * frames - 479, 480 * frames + 1, dtype=torch.float64)[:, None]
    cycles = sample * f0[0, 0].double() * torch.arange(1, 10) / 24000
    expected = 0.1 * torch.sin(2 * math.pi * cycles + phase)
    np.testing.assert_allclose(made, expected, atol=2e-5)


def test_a_waveform_is_the_inverse_of_its_spectrum() -> None:
    network = Vocoder(VOCODER_SIZES["tiny"])
    samples = torch.randn(2, 960, generator=torch.Generator().manual_seed(0))
    real, imaginary = network.spectrum(samples).squeeze(2).chunk(2, 1)
    found = network.waveform(torch.complex(real, imaginary))
    np.testing.assert_allclose(found, samples, atol=1e-5)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_snake_has_the_gradient_of_its_formula(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no NVIDIA GPU")
    generator = torch.Generator().manual_seed(0)
    x = rows(torch.randn(2, 5, 3, generator=generator, dtype=torch.double))
    x = x.to(device).requires_grad_()
    alpha = torch.tensor([0.4, 1.0, -2.5], dtype=torch.double, device=device)[:, None, None]
    alpha.requires_grad_()
    expected = x + torch.sin(alpha * x).square() / alpha
    torch.testing.assert_close(SnakeFunction.apply(x, alpha), expected)
    assert torch.autograd.gradcheck(SnakeFunction.apply, (x, alpha))


def test_relative_differences_and_their_gradients() -> None:
    generator = torch.Generator().manual_seed(0)
    true = [torch.randn(2, n, 4, generator=generator) for n in (3, 5, 1)]
    made = [torch.randn(x.shape, generator=generator).requires_grad_() for x in true]
    plain = [
        (t - m).abs().mean() / (t.abs().mean() + 1e-3) for t, m in zip(true, made, strict=True)
    ]
    found = RelativeDifferences.apply(3, *true, *made)
    torch.testing.assert_close(found, torch.stack(plain))
    weights = torch.tensor([1.0, -2.0, 0.5])
    slopes = torch.autograd.grad((found * weights).sum(), made)
    torch.testing.assert_close(
        slopes, torch.autograd.grad((torch.stack(plain) * weights).sum(), made)
    )


def test_the_spectral_loss_counts_loudness_in_nepers() -> None:
    loss = SpectralLoss()
    sound = torch.from_numpy(speech(0.8, 2))[None]
    assert loss(sound, sound) == 0
    noise = 0.1 * torch.randn(1, 19_200, generator=torch.Generator().manual_seed(0))
    assert loss(2 * noise, noise).item() == pytest.approx(math.log(2), abs=0.01)


def test_the_high_band_loss_tells_harmonics_from_noise() -> None:
    loss = HighBandLoss()
    time = torch.arange(19_200) / 24000
    low, high = (
        0.05 * sum(torch.sin(2 * math.pi * 150 * k * time + k * k) for k in range(*orders))[None]
        for orders in ((2, 18), (21, 79))
    )
    assert loss(low + high, low + high) == 0
    assert loss(3 * low + high, low + high) < 0.05, "the level below 3 kHz does not count"
    louder = loss(2 * high, high).item()
    assert louder == pytest.approx(math.log(2) / 2, abs=0.05), "the level, not the peakiness"
    generator = torch.Generator().manual_seed(0)
    noise, other = (high.std() * torch.randn(1, 19_200, generator=generator) for _ in range(2))
    assert loss(noise, other) < 0.2, "one noise is like another"
    assert loss(noise, high) > 0.5


def test_new_discriminators_are_trained_at_once_beside_a_trained_vocoder(
    folder: Path, tmp_path: Path
) -> None:
    for suffix in (".safetensors", ".json"):
        name = f"vocoder{suffix}"
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    resumed = str(tmp_path / "vocoder.safetensors")
    history = train(folder, tmp_path, "--steps", "3", "--resume", resumed)["history"]
    assert "discriminators" in history[0]
    assert "adversarial" not in history[0]
    assert "adversarial" in history[-1]
    assert (tmp_path / "vocoder_discriminators.safetensors").exists()


def test_discriminators_are_small_and_learn() -> None:
    full = Discriminators(DISCRIMINATOR_SIZES["small"])
    assert parameter_count(full) < 8e6  # less than 16 MB in float16
    torch.manual_seed(0)
    network = Discriminators(DISCRIMINATOR_SIZES["tiny"])
    true = torch.from_numpy(speech(0.8, 2))[None]
    made = 0.1 * torch.randn(1, 19_200)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    losses = []
    for _ in range(6):
        pairs = [output.split(1) for output in network(torch.cat([true, made]))]
        of_true, of_made = zip(*pairs, strict=True)
        losses.append(discriminator_loss(of_true, of_made))
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < 0.9 * losses[0]
    assert feature_loss(of_true, of_true) == 0
    assert feature_loss(of_true, of_made) > 0.1
