"""Rounding for what is multiplied: better than to the nearest, and read as any codes are."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

torch = pytest.importorskip("torch")

import nightingale  # noqa: E402
from nightingale._core import TensorFile  # noqa: E402
from nightingale.quantization import write_quantized  # noqa: E402
from train import rounding  # noqa: E402
from train.t3_checkpoint import load_t3  # noqa: E402

T3_FILE = "t3_mtl23ls_v2.safetensors"


@pytest.fixture(scope="module")
def products() -> torch.Tensor:
    """Of inputs of which a few directions have most."""
    torch.manual_seed(1)
    x = torch.randn(4000, 24) @ torch.randn(24, 192) + 0.1 * torch.randn(4000, 192)
    return x.T @ x


@pytest.mark.parametrize("bits", [4, 8])
def test_what_comes_out_errs_less_than_by_rounding_to_the_nearest(
    products: torch.Tensor, bits: int
) -> None:
    weight = torch.randn(40, 192)

    def error(found: rounding.Rounded) -> float:
        lost = found.floats() - weight
        return float(((lost @ products) * lost).sum())

    rounded, nearest = rounding.rounded(weight, products, bits), rounding.nearest(weight, bits)
    assert error(rounded) < 0.2 * error(nearest)
    steps = rounded.scales.float().repeat_interleave(rounding.GROUP, 1)
    assert (nearest.floats() - weight).abs().max() < 0.51 * float(steps.max())


@pytest.mark.parametrize("bits", [4, 8])
def test_stored_codes_mean_the_same_to_mlx(products: torch.Tensor, bits: int) -> None:
    rounded = rounding.rounded(torch.randn(6, 192), products, bits)
    words, scales, biases = map(mx.array, rounded.stored(bits))
    found = mx.dequantize(
        words, scales.astype(mx.float32), biases.astype(mx.float32), rounding.GROUP, bits
    )
    np.testing.assert_allclose(np.array(found), rounded.floats().numpy(), rtol=0, atol=1e-6)


def test_inputs_that_were_never_seen_do_no_harm() -> None:
    weight, nothing = torch.randn(5, 128), torch.zeros(128, 128)
    rounded, nearest = rounding.rounded(weight, nothing, 4), rounding.nearest(weight, 4)
    assert torch.equal(rounded.codes, nearest.codes)
    flat = rounding.rounded(torch.full((3, 64), 0.25), torch.eye(64), 4)
    assert torch.equal(flat.floats(), torch.full((3, 64), 0.25))


def test_logits_are_those_of_the_core(quick_checkpoint: Path) -> None:
    tts = nightingale.load(quick_checkpoint, dtype="float32", device="cpu")
    (speech,) = rounding.say(quick_checkpoint, ["Hello there."])
    drawn = np.array([6561, *speech.tokens], np.int32)
    with_text, without = tts.t3_logits(speech.text, drawn)
    model = load_t3(quick_checkpoint / T3_FILE)
    found = rounding.guided_logits(model, speech).numpy()
    expected = with_text + rounding.GUIDANCE * (with_text - without)
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize("agreement", ["0", "1.1"])
def test_layers_are_kept_in_more_bits_until_enough_agree(
    quick_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], agreement: str
) -> None:
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_text("One.\n\nTwo.\nThree.\nFour.\n", "utf-8")
    words = [quick_checkpoint, out, "--text", text, "--agreement", agreement, "--device", "cpu"]
    rounding.main([str(word) for word in words])
    said = capsys.readouterr().out
    file = TensorFile.open(str(out / T3_FILE))
    name = "tfmr.layers.0.self_attn.q_proj.weight"
    before = TensorFile.open(str(quick_checkpoint / T3_FILE)).read(name)
    if agreement == "0":
        assert file.fewest_bits() == 4
        assert "layers in 4 bits" in said.splitlines()[-1]
        error = np.linalg.norm(file.read(name) - before) / np.linalg.norm(before)
        assert 0.01 < error < 0.2
    else:
        assert file.fewest_bits() == 8
        assert "0 of" in said.splitlines()[-1]
        assert "with all layers in 8 bits no more than" in said
    tts = nightingale.load(out, device="cpu")
    assert len(tts.speech_tokens("One.", max_tokens=20))


def test_too_few_sentences_are_told(quick_checkpoint: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("One.\n", "utf-8")
    with pytest.raises(SystemExit):
        rounding.main([str(quick_checkpoint), str(tmp_path / "out"), "--text", str(text)])
    assert not (tmp_path / "out").exists()


def test_codes_of_another_shape_are_refused(quick_checkpoint: Path, tmp_path: Path) -> None:
    name = "tfmr.layers.0.self_attn.q_proj.weight"
    made = {name: rounding.nearest(torch.randn(3, 64), 4).stored(4)}
    with pytest.raises(ValueError, match=r"q_proj.weight is \('uint32'"):
        write_quantized(
            quick_checkpoint / T3_FILE,
            tmp_path / "t3.safetensors",
            lambda _, found: 4 if found == name else 0,
            made=made,
        )
    assert not list(tmp_path.iterdir())
