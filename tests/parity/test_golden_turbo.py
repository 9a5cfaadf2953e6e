"""T3 of Turbo and Nano at small size against outputs of the reference beside this file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nightingale import _core
from nightingale.quantization import t3_bits, write_quantized

from . import turbo_runs
from .t3_runs import LOGITS_BOUND, relative_error

GOLDEN = Path(__file__).with_name("golden") / "turbo.npz"


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    with np.load(GOLDEN) as file:
        return dict(file)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("turbo")
    return {name: turbo_runs.write_t3(folder, name) for name in turbo_runs.MODELS}


@pytest.fixture(scope="module")
def models(files: dict[str, Path]) -> dict[str, _core.T3]:
    return {name: turbo_runs.load(path) for name, path in files.items()}


@pytest.mark.parametrize("name", turbo_runs.MODELS)
def test_logits_equal_the_reference(
    models: dict[str, _core.T3], golden: dict[str, np.ndarray], name: str
) -> None:
    for index in range(len(turbo_runs.LOGITS_CORNERS)):
        case = turbo_runs.logits_case(index)
        for chunk in (0, 1):
            found = turbo_runs.logits(models[name], case, chunk)
            assert found.shape == (1, len(case["speech_tokens"]), turbo_runs.SPEECH_VOCABULARY)
            for key, value in turbo_runs.digest(found).items():
                assert relative_error(value, golden[f"{name}/{index}/{key}"]) < LOGITS_BOUND


@pytest.mark.parametrize("name", turbo_runs.MODELS)
def test_greedy_tokens_equal_the_reference(
    models: dict[str, _core.T3], golden: dict[str, np.ndarray], name: str
) -> None:
    assert golden[f"{name}/gaps"].min() > 1e-5  # no toss-up among them
    found = turbo_runs.greedy(models[name], turbo_runs.decode_case(0))
    assert len(found) == turbo_runs.GREEDY_STEPS
    np.testing.assert_array_equal(found, golden[f"{name}/tokens"])


@pytest.mark.parametrize("form", ["cpu", "gpu"])
def test_sampling_equals_the_reference(golden: dict[str, np.ndarray], form: str) -> None:
    for step in ("first", "later"):
        for index in range(len(golden["first/kept"])):
            case = turbo_runs.sampler_case(index)
            found = turbo_runs.probabilities(case, form, step == "first")
            kept = np.unpackbits(golden[f"{step}/kept"][index])[: len(found)].astype(bool)
            differing = (found > 0) != kept
            assert not (differing & ~turbo_runs.uncertain_tokens(case)).any()
            if not differing.any():
                most_likely = golden[f"{step}/ids"][index]
                expected = golden[f"{step}/probabilities"][index]
                np.testing.assert_allclose(found[most_likely], expected, rtol=2e-5, atol=1e-7)


def test_the_model_says_what_it_is(models: dict[str, _core.T3]) -> None:
    info = models["turbo"].describe()
    told = {name: info[name] for name in ("backbone", "guidance", "emotion", "prompt_tokens")}
    assert told == {"backbone": "gpt2", "guidance": False, "emotion": False, "prompt_tokens": 375}
    assert (info["top_k"], info["top_p"], info["min_p"]) == (1000, 0.95, 0.0)
    assert (info["layers"], info["hidden"], info["ffn"]) == (4, 128, 512)


@pytest.mark.parametrize("bits", [8, 4])
def test_quantized_weights_stay_close(
    files: dict[str, Path], models: dict[str, _core.T3], tmp_path: Path, bits: int
) -> None:
    case = turbo_runs.logits_case(1)
    exact = turbo_runs.logits(models["nano"], case)
    found = turbo_runs.logits(turbo_runs.load(files["nano"], bits=bits), case)
    assert 1e-4 < relative_error(found, exact) < (0.05 if bits == 8 else 0.6)
    # GPT-2's matrices are transposed in the file; quantized ones are not.
    write_quantized(files["nano"], tmp_path / "quantized.safetensors", t3_bits(bits))
    ahead = turbo_runs.load(tmp_path / "quantized.safetensors", dtype="float16")
    np.testing.assert_array_equal(turbo_runs.logits(ahead, case), found)
