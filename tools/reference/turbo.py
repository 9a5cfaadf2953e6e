"""The reference's T3 with a GPT-2 backbone (Turbo, Nano) and its sampling, as jobs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
from chatterbox.models.t3 import llama_configs
from chatterbox.models.t3.modules.cond_enc import T3Cond
from chatterbox.models.t3.modules.t3_config import T3Config
from chatterbox.models.t3.t3 import T3

from .tensors import HEAD_SIZE, Arrays, count, load_tensors

START_SPEECH, STOP_SPEECH = 6561, 6562
FILES = ("t3_turbo_v1.safetensors", "t3_nano_v1.safetensors")


def load_turbo(checkpoint: str | Path) -> T3:
    """The reference T3 as tts_turbo.py sets it up, its sizes read from the tensors."""
    state = load_tensors(checkpoint, FILES)
    text_vocabulary, hidden = state["text_emb.weight"].shape
    hp = T3Config(text_tokens_dict_size=text_vocabulary)
    hp.llama_config_name = f"GPT2_{hidden}x{count(state, 'tfmr.h.')}"
    hp.speech_tokens_dict_size = state["speech_emb.weight"].shape[0]
    hp.input_pos_emb = None
    hp.speech_cond_prompt_len = 375
    hp.use_perceiver_resampler = False
    hp.emotion_adv = False
    positions = state["tfmr.wpe.weight"].shape[0]
    llama_configs.LLAMA_CONFIGS[hp.llama_config_name] = {
        **llama_configs.GPT2_MEDIUM_CONFIG,
        "n_embd": hidden,
        "hidden_size": hidden,
        "n_head": hidden // HEAD_SIZE,
        "n_layer": count(state, "tfmr.h."),
        "n_ctx": positions,
        "n_positions": positions,
        "vocab_size": 8,  # of a table that is deleted below
    }
    t3 = T3(hp)
    for name in ("tfmr.wte.weight", "text_head.weight"):  # no one reads them
        state.pop(name, None)
    missing, unexpected = t3.load_state_dict(state, strict=False)
    assert set(missing) <= {"tfmr.wte.weight", "text_head.weight"}
    assert not unexpected
    del t3.tfmr.wte
    return t3.eval()


@lru_cache(maxsize=1)
def shared_turbo(checkpoint: str | Path) -> T3:
    return load_turbo(checkpoint)


def prefill(
    t3: T3, text_tokens: np.ndarray, speaker: np.ndarray, prompt: np.ndarray | None
) -> torch.Tensor:
    """What inference_turbo gives to the backbone first: up to the start of speech."""
    text = torch.tensor(text_tokens.tolist())[None]
    voice = T3Cond(
        speaker_emb=torch.from_numpy(speaker)[None],
        cond_prompt_speech_tokens=None if prompt is None else torch.tensor(prompt.tolist())[None],
        emotion_adv=None,
    )
    embeds, _ = t3.prepare_input_embeds(
        t3_cond=voice,
        text_tokens=text,
        speech_tokens=torch.full_like(text[:, :1], START_SPEECH),
        cfg_weight=0.0,
    )
    return embeds


@torch.inference_mode()
def turbo_logits(
    checkpoint: str | Path,
    text_tokens: np.ndarray,
    speech_tokens: np.ndarray,
    speaker: np.ndarray,
    prompt: np.ndarray | None = None,
) -> Arrays:
    """Teacher-forced `logits` [1, n, V]; speech_tokens[0] is the start of speech."""
    t3 = shared_turbo(checkpoint)
    embeds = prefill(t3, text_tokens, speaker, prompt)
    rest = t3.speech_emb(torch.tensor(speech_tokens[1:].tolist(), dtype=torch.long))[None]
    hidden = t3.tfmr(inputs_embeds=torch.cat([embeds, rest], dim=1), use_cache=False)[0]
    return {"logits": t3.speech_head(hidden[:, -len(speech_tokens) :]).numpy()}


@torch.inference_mode()
def turbo_decode(
    checkpoint: str | Path,
    text_tokens: np.ndarray,
    steps: int,
    speaker: np.ndarray,
    prompt: np.ndarray | None = None,
    forced_tokens: Sequence[int] = (),
) -> Arrays:
    """The most likely tokens, the stop token aside, as `tokens` and `choices`.

    `forced_tokens` replace the first choices. `gaps` is the winner's lead over max |logit|.
    """
    t3 = shared_turbo(checkpoint)
    embeds, past = prefill(t3, text_tokens, speaker, prompt), None
    tokens: list[int] = []
    choices: list[int] = []
    gaps: list[float] = []
    for step in range(steps):
        output = t3.tfmr(inputs_embeds=embeds, past_key_values=past, use_cache=True)
        past = output.past_key_values
        logits = t3.speech_head(output[0][:, -1])[0]
        scale = logits.abs().max()
        logits[STOP_SPEECH] = -torch.inf
        best = torch.topk(logits, 2)
        choices.append(int(best.indices[0]))
        gaps.append(float((best.values[0] - best.values[1]) / scale))
        tokens.append(int(forced_tokens[step]) if step < len(forced_tokens) else choices[-1])
        embeds = t3.speech_emb(torch.tensor([[tokens[-1]]]))
    return {
        "tokens": np.array(tokens, np.int32),
        "choices": np.array(choices, np.int32),
        "gaps": np.array(gaps, np.float32),
    }


@torch.inference_mode()
def turbo_sample(logits: np.ndarray, seen: np.ndarray, **options: Any) -> Arrays:
    """What inference_turbo itself draws the `first` token from, and the one after `seen`: both
    [V], by the same logits. options: temperature, top_k, top_p, repetition_penalty."""
    drawn: list[np.ndarray] = []

    def record(probabilities: torch.Tensor, num_samples: int) -> torch.Tensor:
        drawn.append(probabilities[0].numpy())
        stop = torch.tensor([[STOP_SPEECH]])
        return torch.tensor(seen.tolist())[None] if len(drawn) == 1 else stop

    nothing = torch.zeros(1, 1, 1)

    class Output(tuple):
        past_key_values = None

    stub = SimpleNamespace(
        hp=SimpleNamespace(start_speech_token=START_SPEECH, stop_speech_token=STOP_SPEECH),
        prepare_input_embeds=lambda **_: (nothing, 0),
        tfmr=lambda **_: Output((nothing,)),
        speech_head=lambda _: torch.from_numpy(logits.copy())[None, None],
        speech_emb=lambda _: nothing,
    )
    with mock.patch.object(torch, "multinomial", record):
        T3.inference_turbo(stub, None, torch.zeros(1, 1, dtype=torch.long), **options)
    return {"first": drawn[0], "later": drawn[1]}


@torch.inference_mode()
def time_turbo(
    folder: str | Path,
    text_tokens: Sequence[int],
    steps: int,
    threads: int | None = None,
    seed: int = 0,
) -> Arrays:
    """`prefill_s` and `tokens_per_s` of T3.inference_turbo as it is, with the voice of conds.pt.

    A stop is swapped for sound, so that every run has the same number of steps.
    """
    if threads:
        torch.set_num_threads(threads)
    torch.manual_seed(seed)
    t3 = load_turbo(folder)
    voice = T3Cond(**torch.load(Path(folder) / "conds.pt", weights_only=True)["t3"])
    times: list[float] = []
    multinomial = torch.multinomial

    def timed_draw(*args: Any, **kwargs: Any) -> torch.Tensor:
        token = multinomial(*args, **kwargs)
        times.append(time.perf_counter())
        return torch.where(token == STOP_SPEECH, torch.tensor(len(times)), token)

    with mock.patch.object(torch, "multinomial", timed_draw):
        start = time.perf_counter()
        t3.inference_turbo(voice, torch.tensor([list(text_tokens)]), max_gen_len=steps - 1)
    return {
        "prefill_s": np.array(times[0] - start),
        "tokens_per_s": np.array((len(times) - 1) / (times[-1] - times[0])),
        "threads": np.array(torch.get_num_threads()),
    }


JOBS = {job.__name__: job for job in (turbo_logits, turbo_decode, turbo_sample, time_turbo)}
