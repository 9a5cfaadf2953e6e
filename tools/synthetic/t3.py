"""Synthetic T3 weights."""

from __future__ import annotations

from dataclasses import dataclass

from .voice import SPEAKER_SIZE
from .weights import Tensors, Weights, linear_weights, norm_weights

SPEECH_VOCABULARY = 8194
SPEECH_CODES = 6561  # ids below this are sound
TEXT_POSITIONS = 2050
SPEECH_POSITIONS = 4100
PERCEIVER_QUERIES = 32


@dataclass(frozen=True)
class T3Size:
    hidden: int  # a multiple of the head size, 64, and of the perceiver's 4 heads
    layers: int
    ffn: int


# Small keeps the official vocabularies and positions, which at width 192 are 21 of its 29 MB.
T3_SIZES = {
    "small": T3Size(hidden=192, layers=4, ffn=512),
    "full": T3Size(hidden=1024, layers=30, ffn=4096),
}


def t3_weights(size: T3Size, text_vocabulary: int) -> Tensors:
    """T3's tensors by official name, with scales that keep 30 layers bounded and logits varied."""
    hidden, ffn = size.hidden, size.ffn
    fan_hidden, fan_ffn = hidden**-0.5, ffn**-0.5
    branch = (2 * size.layers) ** -0.5

    def norm(channels: int) -> Weights:
        return Weights((channels,), std=0.1, mean=1.0)

    weights = {"tfmr.embed_tokens.weight": Weights((8, hidden), std=1.0)}
    for layer in range(size.layers):
        name = f"tfmr.layers.{layer}."
        # Query and key gains of 1.5 give attention scores a deviation near 2: far from uniform.
        weights |= {
            name + "self_attn.q_proj.weight": Weights((hidden, hidden), 1.5 * fan_hidden),
            name + "self_attn.k_proj.weight": Weights((hidden, hidden), 1.5 * fan_hidden),
            name + "self_attn.v_proj.weight": Weights((hidden, hidden), fan_hidden),
            name + "self_attn.o_proj.weight": Weights((hidden, hidden), 2 * branch * fan_hidden),
            name + "mlp.gate_proj.weight": Weights((ffn, hidden), 1.5 * fan_hidden),
            name + "mlp.up_proj.weight": Weights((ffn, hidden), fan_hidden),
            name + "mlp.down_proj.weight": Weights((hidden, ffn), branch * fan_ffn),
            name + "input_layernorm.weight": norm(hidden),
            name + "post_attention_layernorm.weight": norm(hidden),
        }
    weights |= {
        "tfmr.norm.weight": norm(hidden),
        "cond_enc.spkr_enc.weight": Weights((hidden, SPEAKER_SIZE), 1.0),
        "cond_enc.spkr_enc.bias": Weights((hidden,), 0.1),
        "cond_enc.emotion_adv_fc.weight": Weights((hidden, 1), 1.0),
    }
    perceiver = "cond_enc.perceiver."
    weights |= {
        perceiver + "pre_attention_query": Weights((1, PERCEIVER_QUERIES, hidden), 0.5),
        perceiver + "attn.norm.weight": norm(hidden),
        perceiver + "attn.norm.bias": Weights((hidden,), 0.1),
    }
    for projection, gain in (("to_q", 1.5), ("to_k", 1.5), ("to_v", 1.0), ("proj_out", 1.0)):
        weights |= {
            f"{perceiver}attn.{projection}.weight": Weights((hidden, hidden), gain * fan_hidden),
            f"{perceiver}attn.{projection}.bias": Weights((hidden,), 0.1),
        }
    return weights | {
        "text_emb.weight": Weights((text_vocabulary, hidden), 1.0),
        "speech_emb.weight": Weights((SPEECH_VOCABULARY, hidden), 0.7),
        "text_pos_emb.emb.weight": Weights((TEXT_POSITIONS, hidden), 0.3),
        "speech_pos_emb.emb.weight": Weights((SPEECH_POSITIONS, hidden), 0.3),
        "text_head.weight": Weights((text_vocabulary, hidden), 2.5 * fan_hidden),
        # The ids past stop mean nothing to S3Gen: no model says them.
        "speech_head.weight": Weights(
            (SPEECH_VOCABULARY, hidden), 2.5 * fan_hidden, quiet_from=SPEECH_CODES + 2
        ),
    }


GPT2_TEXT_VOCABULARY = 50276
GPT2_SPEECH_VOCABULARY = SPEECH_CODES + 2  # start and stop
GPT2_POSITIONS = 8196


@dataclass(frozen=True)
class Gpt2Size:
    hidden: int  # a multiple of the head size, 64
    layers: int
    text_vocabulary: int = GPT2_TEXT_VOCABULARY
    positions: int = GPT2_POSITIONS
    unused_rows: int = GPT2_TEXT_VOCABULARY  # of the two tables that no one reads

    @property
    def ffn(self) -> int:
        return 4 * self.hidden


# Small keeps the official vocabularies: at width 128 the text table is 26 of its 36 MB.
GPT2_SIZES = {
    "turbo": {
        "small": Gpt2Size(128, 4, positions=2048, unused_rows=8),
        "full": Gpt2Size(1024, 24),
    },
    "nano": {
        "small": Gpt2Size(64, 3, positions=2048, unused_rows=8),
        "full": Gpt2Size(768, 12),
    },
}


def gpt2_t3_weights(size: Gpt2Size) -> Tensors:
    """The T3 tensors of Turbo and Nano by official name. GPT-2's matrices are [inputs, outputs]."""
    hidden = size.hidden
    branch = (2 * size.layers) ** -0.5

    def conv1d(name: str, inputs: int, outputs: int, gain: float) -> Tensors:
        return {
            name + ".weight": Weights((inputs, outputs), gain * inputs**-0.5),
            name + ".bias": Weights((outputs,), 0.1),
        }

    weights: Tensors = {
        "tfmr.wte.weight": Weights((size.unused_rows, hidden), 1.0),
        "tfmr.wpe.weight": Weights((size.positions, hidden), 0.3),
        "text_emb.weight": Weights((size.text_vocabulary, hidden), 1.0),
        "speech_emb.weight": Weights((GPT2_SPEECH_VOCABULARY, hidden), 0.7),
        "text_head.weight": Weights((size.unused_rows, hidden), 2.5 * hidden**-0.5),
    }
    weights |= linear_weights("cond_enc.spkr_enc", SPEAKER_SIZE, hidden, gain=SPEAKER_SIZE**0.5)
    weights |= linear_weights("speech_head", hidden, GPT2_SPEECH_VOCABULARY, gain=2.5)
    for layer in range(size.layers):
        name = f"tfmr.h.{layer}."
        weights |= norm_weights(name + "ln_1", hidden)
        # A gain of 1.5 gives attention scores a deviation near 2: far from uniform.
        weights |= conv1d(name + "attn.c_attn", hidden, 3 * hidden, 1.5)
        weights |= conv1d(name + "attn.c_proj", hidden, hidden, 2 * branch)
        weights |= norm_weights(name + "ln_2", hidden)
        weights |= conv1d(name + "mlp.c_fc", hidden, size.ffn, 1.5)
        weights |= conv1d(name + "mlp.c_proj", size.ffn, hidden, branch)
    return weights | norm_weights("tfmr.ln_f", hidden)
