"""GPTQ: smaller errors than rounding to the nearest value, in MLX's format."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

torch = pytest.importorskip("torch")

import nightingale  # noqa: E402
from nightingale._core import TensorFile  # noqa: E402
from nightingale.quantization import write_quantized  # noqa: E402
from train import gptq  # noqa: E402
from train.t3_checkpoint import load_t3  # noqa: E402

T3_FILE = "t3_mtl23ls_v2.safetensors"


@pytest.fixture(scope="module")
def products() -> torch.Tensor:
    """Of inputs in which a few directions dominate."""
    torch.manual_seed(1)
    x = torch.randn(4000, 24) @ torch.randn(24, 192) + 0.1 * torch.randn(4000, 192)
    return x.T @ x


@pytest.mark.parametrize("bits", [4, 8])
def test_gptq_has_a_smaller_output_error_than_rounding(products: torch.Tensor, bits: int) -> None:
    weight = torch.randn(40, 192)

    def error(found: gptq.QuantizedMatrix) -> float:
        lost = found.floats() - weight
        return float(((lost @ products) * lost).sum())

    quantized, rounded = (
        gptq.gptq_quantize(weight, products, bits),
        gptq.round_to_nearest(weight, bits),
    )
    assert error(quantized) < 0.2 * error(rounded)
    steps = quantized.scales.float().repeat_interleave(gptq.GROUP, 1)
    assert (rounded.floats() - weight).abs().max() < 0.51 * float(steps.max())


@pytest.mark.parametrize("bits", [4, 8])
def test_packed_weights_dequantize_equally_in_mlx(products: torch.Tensor, bits: int) -> None:
    quantized = gptq.gptq_quantize(torch.randn(6, 192), products, bits)
    words, scales, biases = map(mx.array, quantized.packed(bits))
    found = mx.dequantize(
        words, scales.astype(mx.float32), biases.astype(mx.float32), gptq.GROUP, bits
    )
    np.testing.assert_allclose(np.array(found), quantized.floats().numpy(), rtol=0, atol=1e-6)


def test_unseen_inputs_fall_back_to_rounding() -> None:
    weight, nothing = torch.randn(5, 128), torch.zeros(128, 128)
    quantized, rounded = gptq.gptq_quantize(weight, nothing, 4), gptq.round_to_nearest(weight, 4)
    assert torch.equal(quantized.values, rounded.values)
    flat = gptq.gptq_quantize(torch.full((3, 64), 0.25), torch.eye(64), 4)
    assert torch.equal(flat.floats(), torch.full((3, 64), 0.25))


def test_logits_are_those_of_the_core(quick_checkpoint: Path) -> None:
    tts = nightingale.load(quick_checkpoint, dtype="float32", device="cpu")
    (speech,) = gptq.generate_calibration(quick_checkpoint, ["Hello there."])
    drawn = np.array([6561, *speech.tokens], np.int32)
    with_text, without = tts.t3_logits(speech.text, drawn)
    model = load_t3(quick_checkpoint / T3_FILE)
    found = gptq.guided_logits(model, speech).numpy()
    expected = with_text + gptq.GUIDANCE * (with_text - without)
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize("agreement", ["0", "1.1"])
def test_the_last_layers_stay_in_8_bits_until_enough_tokens_agree(
    quick_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], agreement: str
) -> None:
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_text("One.\n\nTwo.\nThree.\nFour.\n", "utf-8")
    words = [quick_checkpoint, out, "--text", text, "--agreement", agreement, "--device", "cpu"]
    gptq.main([str(word) for word in words])
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
        assert "with all layers in 8 bits only" in said
    tts = nightingale.load(out, device="cpu")
    assert len(tts.speech_tokens("One.", max_tokens=20))


def test_too_few_sentences_are_an_error(quick_checkpoint: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("One.\n", "utf-8")
    with pytest.raises(SystemExit):
        gptq.main([str(quick_checkpoint), str(tmp_path / "out"), "--text", str(text)])
    assert not (tmp_path / "out").exists()


def test_quantized_weights_of_another_shape_are_refused(
    quick_checkpoint: Path, tmp_path: Path
) -> None:
    name = "tfmr.layers.0.self_attn.q_proj.weight"
    made = {name: gptq.round_to_nearest(torch.randn(3, 64), 4).packed(4)}
    with pytest.raises(ValueError, match=r"q_proj.weight is \('uint32'"):
        write_quantized(
            quick_checkpoint / T3_FILE,
            tmp_path / "t3.safetensors",
            lambda _, found: 4 if found == name else 0,
            made=made,
        )
    assert not list(tmp_path.iterdir())
