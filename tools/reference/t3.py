"""The reference's T3, its samplers, alignment analyser and tokenizers, as jobs."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import torch
from chatterbox import mtl_tts, tts
from chatterbox.models.t3 import llama_configs
from chatterbox.models.t3.inference import alignment_stream_analyzer
from chatterbox.models.t3.inference.alignment_stream_analyzer import AlignmentStreamAnalyzer
from chatterbox.models.t3.inference.t3_hf_backend import T3HuggingfaceBackend
from chatterbox.models.t3.modules import cond_enc
from chatterbox.models.t3.modules.cond_enc import T3Cond
from chatterbox.models.t3.modules.perceiver import Perceiver
from chatterbox.models.t3.modules.t3_config import T3Config
from chatterbox.models.t3.t3 import T3
from chatterbox.models.tokenizers import EnTokenizer, MTLTokenizer
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TopPLogitsWarper,
)

from .tensors import HEAD_SIZE, Arrays, count, load_tensors

START_TEXT, STOP_TEXT = 255, 0
START_SPEECH, STOP_SPEECH = 6561, 6562
T3_FILES = tuple(f"t3_{name}.safetensors" for name in ("mtl23ls_v2", "mtl23ls_v3", "23lang", "cfg"))
OFFICIAL_ALIGNED_HEADS = list(alignment_stream_analyzer.LLAMA_ALIGNED_HEADS)


def load_t3(checkpoint: str | Path) -> T3:
    """The reference T3 in eval mode, its sizes read from the checkpoint's tensors."""
    state = load_tensors(checkpoint, T3_FILES)
    text_vocabulary, hidden = state["text_emb.weight"].shape
    queries = state["cond_enc.perceiver.pre_attention_query"].shape[1]
    layers = count(state, "tfmr.layers.")

    hp = T3Config(text_vocabulary)
    hp.llama_config_name = f"Llama_{hidden}x{layers}"
    llama_configs.LLAMA_CONFIGS[hp.llama_config_name] = {
        **llama_configs.LLAMA_520M_CONFIG_DICT,
        "hidden_size": hidden,
        "intermediate_size": state["tfmr.layers.0.mlp.gate_proj.weight"].shape[0],
        "num_hidden_layers": layers,
        "num_attention_heads": hidden // HEAD_SIZE,
        "num_key_value_heads": hidden // HEAD_SIZE,
    }
    with mock.patch.object(cond_enc, "Perceiver", partial(Perceiver, queries, hidden, hidden)):
        t3 = T3(hp)
    t3.load_state_dict(state)
    return t3.eval()


def alignment_heads(folder: str | Path) -> list[tuple[int, int]]:
    """The (layer, head) pairs of nightingale.json, or the reference's own."""
    settings = Path(folder) / "nightingale.json"
    if settings.exists():
        heads = json.loads(settings.read_text()).get("t3", {}).get("alignment_heads")
        if heads is not None:
            return [tuple(pair) for pair in heads]
    return OFFICIAL_ALIGNED_HEADS


@contextmanager
def aligned_heads_of(folder: str | Path) -> Iterator[None]:
    """Analysers made inside watch the checkpoint's alignment heads."""
    heads = alignment_heads(folder)
    with mock.patch.object(alignment_stream_analyzer, "LLAMA_ALIGNED_HEADS", heads):
        yield


def load_voice(folder: str | Path, prompt: bool = True, emotion: float | None = None) -> T3Cond:
    """A new T3Cond of conds.pt, since preparing one modifies it; with or without prompt tokens."""
    fields = torch.load(Path(folder) / "conds.pt", weights_only=True)["t3"]
    if not prompt:
        fields["cond_prompt_speech_tokens"] = None
    if emotion is not None:
        fields["emotion_adv"] = torch.full((1, 1, 1), emotion)
    return T3Cond(**fields)


def voice_of(
    speaker_emb: np.ndarray, emotion_adv: float, cond_prompt_speech_tokens: np.ndarray | None = None
) -> T3Cond:
    """A T3Cond of the arrays of a nightingale.Voice."""
    prompt = cond_prompt_speech_tokens
    return T3Cond(
        speaker_emb=torch.from_numpy(speaker_emb)[None],
        cond_prompt_speech_tokens=None if prompt is None else torch.tensor(prompt.tolist())[None],
        emotion_adv=torch.full((1, 1, 1), emotion_adv),
    )


def framed_text(text_tokens: Sequence[int]) -> torch.Tensor:
    """[2, n + 2] guidance rows with start and stop added, as generate() makes them."""
    row = [START_TEXT, *(int(token) for token in text_tokens), STOP_TEXT]
    return torch.tensor([row, row])


class Decoder:
    """The parts of T3.inference for one utterance: its prefill, its backend and its analyser.

    analysed: the checkpoint's folder, where an analyser is to run.
    """

    def __init__(
        self,
        t3: T3,
        text_tokens: Sequence[int],
        voice: T3Cond,
        analysed: str | Path | None = None,
    ) -> None:
        self.t3 = t3
        text = framed_text(text_tokens)
        # [2, T, hidden]: conditioning, text (zeroed in row 1) and the prompt's own 6561.
        self.prefill, len_cond = t3.prepare_input_embeds(
            t3_cond=voice,
            text_tokens=text,
            speech_tokens=torch.full_like(text[:, :1], START_SPEECH),
            cfg_weight=0.5,  # any positive weight zeroes row 1
        )
        self.analyser = None
        if analysed is not None:
            with aligned_heads_of(analysed):
                self.analyser = AlignmentStreamAnalyzer(
                    t3.tfmr,
                    None,
                    text_tokens_slice=(len_cond, len_cond + text.size(1)),
                    eos_idx=STOP_SPEECH,
                )
        self.backend = T3HuggingfaceBackend(
            config=t3.cfg,
            llama=t3.tfmr,
            speech_enc=t3.speech_emb,
            speech_head=t3.speech_head,
            alignment_stream_analyzer=self.analyser,
        )

    def speech_embeds(self, token: int, position: int) -> torch.Tensor:
        embed = self.t3.speech_emb(torch.tensor([[int(token)]]))
        embed = embed + self.t3.speech_pos_emb.get_fixed_embedding(position)
        return torch.cat([embed, embed])

    def forward(self, embeds: torch.Tensor, past: Any = None) -> tuple[torch.Tensor, Any]:
        output = self.backend(
            inputs_embeds=embeds,
            past_key_values=past,
            output_attentions=self.analyser is not None,
            output_hidden_states=True,
            return_dict=True,
        )
        return output.logits, output.past_key_values


@torch.inference_mode()
def conditioning(folder: str | Path, prompt: bool = True, emotion: float | None = None) -> Arrays:
    """`embeds` [34, hidden] (speaker, 32 perceiver outputs, emotion), or [2, hidden] unprompted."""
    t3 = shared_t3(folder)
    return {"embeds": t3.prepare_conditioning(load_voice(folder, prompt, emotion))[0].numpy()}


@torch.inference_mode()
def logits(
    folder: str | Path,
    text_tokens: Sequence[int],
    speech_tokens: Sequence[int],
    prompt: bool = True,
    emotion: float | None = None,
    voice: dict[str, Any] | None = None,
) -> Arrays:
    """Teacher-forced `logits` [2, n, 8194]; speech_tokens[k] is at position k, [0] is 6561.

    folder: or a T3 file, which needs a voice (the arguments of `voice_of`).
    """
    condition = voice_of(**voice) if voice else load_voice(folder, prompt, emotion)
    decoder = Decoder(shared_t3(folder), text_tokens, condition)
    speech = [decoder.speech_embeds(token, k) for k, token in enumerate(speech_tokens)]
    output, _ = decoder.forward(torch.cat([decoder.prefill, *speech], dim=1))
    return {"logits": output[:, -len(speech) :].numpy()}


@torch.inference_mode()
def decode(
    folder: str | Path,
    text_tokens: Sequence[int],
    steps: int,
    temperature: float = 0.8,
    repetition_penalty: float = 2.0,
    cfg_weight: float = 0.5,
    min_p: float = 0.05,
    top_p: float = 1.0,
    analyser: bool = False,
    mask_stop: bool = True,
    prompt: bool = True,
    emotion: float | None = None,
    forced_tokens: Sequence[int] = (),
    gumbel: np.ndarray | None = None,
) -> Arrays:
    """Greedy decoding; given Gumbel noise [steps, 8194], the draw argmax(scores + gumbel[step]).

    `forced_tokens` replace the first choices; both are returned, as `tokens` and `choices`. `gaps`
    is the winner's lead over max |guided logit|: below the rounding error the choice is arbitrary.
    """
    # Hooks stay on the modules they were put on: a run with the analyser needs its own T3.
    t3 = load_t3(folder) if analyser else shared_t3(folder)
    voice = load_voice(folder, prompt, emotion)
    decoder = Decoder(t3, text_tokens, voice, folder if analyser else None)
    start = decoder.speech_embeds(START_SPEECH, 0)
    output, past = decoder.forward(torch.cat([decoder.prefill, start], dim=1))
    seen = [START_SPEECH]
    choices: list[int] = []
    gaps: list[float] = []
    for step in range(steps):
        cond, uncond = output[:1, -1], output[1:, -1]
        guided = cond + cfg_weight * (cond - uncond)
        scale = guided.abs().max()
        if mask_stop:
            guided[:, STOP_SPEECH] = -torch.inf
        if decoder.analyser:
            guided = decoder.analyser.step(guided, next_token=seen[-1])
        penalised, scores = process_logits(
            guided, seen, temperature, repetition_penalty, min_p, top_p
        )
        scores = penalised if gumbel is None else scores + torch.from_numpy(gumbel[step])
        best = torch.topk(scores[0], 2)
        choices.append(int(best.indices[0]))
        gaps.append(float((best.values[0] - best.values[1]) / scale))
        seen.append(int(forced_tokens[step]) if step < len(forced_tokens) else choices[-1])
        if seen[-1] == STOP_SPEECH:
            break
        output, past = decoder.forward(decoder.speech_embeds(seen[-1], step + 1), past)
    return {
        "tokens": np.array(seen[1:], np.int32),
        "choices": np.array(choices, np.int32),
        "gaps": np.array(gaps, np.float32),
    }


def process_logits(
    logits: torch.Tensor,
    seen: Sequence[int],
    temperature: float,
    repetition_penalty: float,
    min_p: float,
    top_p: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """[1, V] after the repetition penalty alone, and after all of the reference's processors."""
    ids = torch.tensor([list(seen)], dtype=torch.long)
    penalised = RepetitionPenaltyLogitsProcessor(float(repetition_penalty))(ids, logits)
    scores = penalised / temperature if temperature != 1.0 else penalised
    scores = MinPLogitsWarper(float(min_p))(ids, scores)
    return penalised, TopPLogitsWarper(float(top_p))(ids, scores)


@torch.inference_mode()
def sample(
    logits: np.ndarray,
    seen: Sequence[int],
    temperature: float,
    repetition_penalty: float,
    min_p: float,
    top_p: float,
) -> Arrays:
    """`probabilities` [V] a token would be drawn from; those filtered out are exactly 0."""
    _, scores = process_logits(
        torch.from_numpy(logits)[None], seen, temperature, repetition_penalty, min_p, top_p
    )
    return {"probabilities": torch.softmax(scores, dim=-1)[0].numpy()}


FORCED_LONG_TAIL, FORCED_ALIGNMENT_REPETITION, FORCED_TOKEN_REPETITION = 1, 2, 4


class ForcingReasons(logging.Handler):
    """Reads why EOS was forced off the analyser's log line, the only place it says so."""

    PATTERN = re.compile(r"(long_tail|alignment_repetition|token_repetition)=(?:tensor\()?True")
    BITS: ClassVar = {
        "long_tail": FORCED_LONG_TAIL,
        "alignment_repetition": FORCED_ALIGNMENT_REPETITION,
        "token_repetition": FORCED_TOKEN_REPETITION,
    }

    def __init__(self) -> None:
        super().__init__()
        self.reasons = 0

    def emit(self, record: logging.LogRecord) -> None:
        for name in self.PATTERN.findall(record.getMessage()):
            self.reasons |= self.BITS[name]

    def take(self) -> int:
        reasons, self.reasons = self.reasons, 0
        return reasons


@contextmanager
def forcing_reasons() -> Iterator[ForcingReasons]:
    logger = alignment_stream_analyzer.logger
    handler = ForcingReasons()
    logger.addHandler(handler)
    propagate, logger.propagate = logger.propagate, False
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def analyse(heads: np.ndarray, tokens: np.ndarray) -> Arrays:
    """Feeds attention maps to the real analyser; one entry a step in each array it returns.

    heads: [3, steps + 1, S] attention of the aligned heads over the text; step 0 has two rows, the
    prompt's 6561 and the loop's own, each later step one. tokens: [steps], tokens[0] is 6561.
    """
    text_length = heads.shape[2]
    layers = [SimpleNamespace(self_attn=torch.nn.Identity()) for _ in range(14)]
    watch = AlignmentStreamAnalyzer(
        SimpleNamespace(layers=layers), None, (0, text_length), eos_idx=STOP_SPEECH
    )
    # The slice starts at column 0, and step 0 skips the rows before its end: pad those.
    skipped = torch.zeros(text_length, text_length)
    steps = []
    with forcing_reasons() as forced:
        for step, token in enumerate(tokens):
            rows = slice(0, 2) if step == 0 else slice(step + 1, step + 2)
            maps = [torch.from_numpy(np.ascontiguousarray(head[rows])) for head in heads]
            if step == 0:
                maps = [torch.cat([skipped, m]) for m in maps]
            watch.last_aligned_attns = maps
            before = torch.zeros(1, STOP_SPEECH + 1)
            watch.step(before, next_token=int(token))
            steps.append(
                {
                    "position": int(watch.alignment[-1].argmax()),
                    "text_position": int(watch.text_position),
                    "started": bool(watch.started),
                    "complete": bool(watch.complete),
                    "completed_at": -1 if watch.completed_at is None else watch.completed_at,
                    # Suppression writes into the logits it is given, forcing returns new ones.
                    "suppressed": bool(before[0, STOP_SPEECH] < 0),
                    "forced": forced.take(),
                }
            )
    return {name: np.array([step[name] for step in steps], np.int16) for name in steps[0]}


def tokenize(folder: str | Path, texts: Sequence[str], languages: Sequence[str | None]) -> Arrays:
    """Token `ids` of all texts end to end, and their `lengths`; English takes no language."""
    folder = Path(folder)
    if (folder / "tokenizer.json").exists():
        english = EnTokenizer(str(folder / "tokenizer.json"))
        rows = [english.text_to_tokens(tts.punc_norm(text)) for text in texts]
    else:
        multilingual = MTLTokenizer(str(folder / "grapheme_mtl_merged_expanded_v1.json"))
        rows = [
            multilingual.text_to_tokens(mtl_tts.punc_norm(text), language_id=language)
            for text, language in zip(texts, languages, strict=True)
        ]
    return {
        "ids": torch.cat(rows, dim=1)[0].numpy(),
        "lengths": np.array([row.size(1) for row in rows], np.int32),
    }


GENERATE_DEFAULTS = {
    "temperature": 0.8,
    "cfg_weight": 0.5,
    "repetition_penalty": 2.0,
    "min_p": 0.05,
    "top_p": 1.0,
}


@torch.inference_mode()
def time_t3(
    folder: str | Path,
    text_tokens: Sequence[int],
    steps: int,
    threads: int | None = None,
    seed: int = 0,
    **options: Any,
) -> Arrays:
    """`prefill_s` and `tokens_per_s` of T3.inference as it is, analyser and all, on a fresh T3.

    `options` override generate()'s own settings. A stop is swapped for sound, so that every run
    has the same number of steps.
    """
    if threads:
        torch.set_num_threads(threads)
    torch.manual_seed(seed)
    t3 = load_t3(folder)
    times: list[float] = []
    forward, multinomial = T3HuggingfaceBackend.forward, torch.multinomial

    def timed_forward(*args: Any, **kwargs: Any) -> Any:
        output = forward(*args, **kwargs)
        times.append(time.perf_counter())
        return output

    def never_stop(*args: Any, **kwargs: Any) -> torch.Tensor:
        token = multinomial(*args, **kwargs)
        return torch.where(token == STOP_SPEECH, torch.tensor(len(times)), token)

    with (
        mock.patch.object(T3HuggingfaceBackend, "forward", timed_forward),
        mock.patch.object(torch, "multinomial", never_stop),
        aligned_heads_of(folder),
        forcing_reasons(),
    ):
        start = time.perf_counter()
        t3.inference(
            t3_cond=load_voice(folder),
            text_tokens=framed_text(text_tokens),
            max_new_tokens=steps,
            **(GENERATE_DEFAULTS | options),
        )
    return {
        "prefill_s": np.array(times[0] - start),
        "tokens_per_s": np.array((len(times) - 1) / (times[-1] - times[0])),
        "threads": np.array(torch.get_num_threads()),
    }


@lru_cache(maxsize=1)
def shared_t3(folder: str | Path) -> T3:
    return load_t3(folder)


JOBS = {
    job.__name__: job for job in (conditioning, logits, decode, sample, analyse, tokenize, time_t3)
}
