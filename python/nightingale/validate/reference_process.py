"""The reference's logits, mel and sound for a checkpoint: a script for the reference's own Python.

    python reference_process.py REQUEST.npz OUT.npz

It has no part of Nightingale. Models are built at the sizes of the checkpoint's tensors, so that
official and synthetic ones of any size load.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock

# Before the imports: nothing is fetched, and no bars are drawn.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TQDM_DISABLE"] = "1"

import numpy as np
import torch
from chatterbox.models.s3gen import s3gen
from chatterbox.models.s3gen.transformer import upsample_encoder
from chatterbox.models.t3 import llama_configs
from chatterbox.models.t3.inference.t3_hf_backend import T3HuggingfaceBackend
from chatterbox.models.t3.modules import cond_enc
from chatterbox.models.t3.modules.cond_enc import T3Cond
from chatterbox.models.t3.modules.perceiver import Perceiver
from chatterbox.models.t3.modules.t3_config import T3Config
from chatterbox.models.t3.t3 import T3
from safetensors.torch import load_file
from torch.distributions.uniform import Uniform

State = dict[str, torch.Tensor]
Request = dict[str, np.ndarray]

START_TEXT, STOP_TEXT = 255, 0
START_SPEECH = 6561
HEAD_SIZE = 64
ENCODER = "flow.encoder."
ESTIMATOR = "flow.decoder.estimator."


def main() -> None:
    request_path, out_path = sys.argv[1:]
    with np.load(request_path) as file:
        request = dict(file)
    with torch.inference_mode():
        model = load_s3gen(str(request["s3gen"]))
        found = {
            "logits": logits(load_t3(str(request["t3"])), request),
            "mel": mel(model, request),
            "samples": vocode(model, request),
        }
    np.savez(out_path, **found)


def read_state(path: str) -> State:
    state = load_file(path) if path.endswith(".safetensors") else torch.load(path, "cpu")
    if "model" in state:  # as training saved it
        state = state["model"][0]
    return {name: tensor.float() for name, tensor in state.items()}


def load_t3(path: str) -> T3:
    state = read_state(path)
    vocabulary, hidden = state["text_emb.weight"].shape
    queries = state["cond_enc.perceiver.pre_attention_query"].shape[1]
    layers = count(state, "tfmr.layers.")
    config = T3Config(vocabulary)
    config.llama_config_name = f"Llama_{hidden}x{layers}"
    llama_configs.LLAMA_CONFIGS[config.llama_config_name] = {
        **llama_configs.LLAMA_520M_CONFIG_DICT,
        "hidden_size": hidden,
        "intermediate_size": state["tfmr.layers.0.mlp.gate_proj.weight"].shape[0],
        "num_hidden_layers": layers,
        "num_attention_heads": hidden // HEAD_SIZE,
        "num_key_value_heads": hidden // HEAD_SIZE,
    }
    with mock.patch.object(cond_enc, "Perceiver", partial(Perceiver, queries, hidden, hidden)):
        t3 = T3(config)
    t3.load_state_dict(state)
    return t3.eval()


def logits(t3: T3, request: Request) -> np.ndarray:
    """[2, n, vocabulary] that follow each speech token; the first of them stands at position 0."""
    row = [START_TEXT, *request["text_tokens"].tolist(), STOP_TEXT]
    text = torch.tensor([row, row])
    prompt = request.get("cond_prompt_speech_tokens")
    condition = T3Cond(
        speaker_emb=torch.from_numpy(request["speaker_emb"])[None],
        cond_prompt_speech_tokens=None if prompt is None else torch.tensor(prompt.tolist())[None],
        emotion_adv=torch.full((1, 1, 1), float(request["emotion_adv"])),
    )
    prefix, _ = t3.prepare_input_embeds(
        t3_cond=condition,
        text_tokens=text,
        speech_tokens=torch.full_like(text[:, :1], START_SPEECH),
        cfg_weight=0.5,  # any but 0 zeroes the second row's text
    )
    tokens = torch.tensor(request["speech_tokens"].tolist())[None]
    places = [t3.speech_pos_emb.get_fixed_embedding(i) for i in range(tokens.size(1))]
    speech = t3.speech_emb(tokens) + torch.cat(places, dim=1)
    backend = T3HuggingfaceBackend(
        config=t3.cfg, llama=t3.tfmr, speech_enc=t3.speech_emb, speech_head=t3.speech_head
    )
    output = backend(
        inputs_embeds=torch.cat([prefix, speech.expand(2, -1, -1)], dim=1),
        past_key_values=None,
        output_hidden_states=True,
        return_dict=True,
    )
    return output.logits[:, -tokens.size(1) :].numpy()


def load_s3gen(path: str) -> s3gen.S3Token2Wav:
    """Flow and vocoder; what bakes voices is left out."""
    state = {
        name: tensor
        for name, tensor in read_state(path).items()
        if name.startswith(("flow.", "mel2wav."))
    }
    with built_at_the_sizes_of(state):
        model = s3gen.S3Token2Wav(meanflow=ESTIMATOR + "time_embed_mixer.weight" in state)
    encoder = model.flow.encoder
    encoder.up_encoders = encoder.up_encoders[: count(state, ENCODER + "up_encoders.")]
    model.load_state_dict(state)
    return model.eval()


def count(state: State, prefix: str) -> int:
    """How many numbered modules there are behind a prefix."""
    return len({name[len(prefix) :].split(".")[0] for name in state if name.startswith(prefix)})


@contextmanager
def built_at_the_sizes_of(state: State) -> Iterator[None]:
    """S3Gen's constructor inside gives its modules the sizes of these tensors."""
    width = state["flow.input_embedding.weight"].shape[1]
    queries = state[ESTIMATOR + "down_blocks.0.1.0.attn1.to_q.weight"].shape[0]
    s3gen_sizes: dict[str, dict[str, Any]] = {
        "CausalMaskedDiffWithXvec": {"input_size": width},
        "UpsampleConformerEncoder": {
            "input_size": width,
            "output_size": width,
            "attention_heads": width // HEAD_SIZE,
            "linear_units": state[ENCODER + "encoders.0.feed_forward.w_1.weight"].shape[0],
            "num_blocks": count(state, ENCODER + "encoders."),
        },
        "ConditionalDecoder": {
            "channels": [state[ESTIMATOR + "final_proj.weight"].shape[1]],
            "num_heads": queries // HEAD_SIZE,
            "n_blocks": count(state, ESTIMATOR + "down_blocks.0.1."),
            "num_mid_blocks": count(state, ESTIMATOR + "mid_blocks."),
        },
        "HiFTGenerator": {"base_channels": len(state["mel2wav.conv_pre.bias"])},
        "ConvRNNF0Predictor": {"cond_channels": len(state["mel2wav.f0_predictor.condnet.0.bias"])},
    }
    encoder_sizes = {
        "PreLookaheadLayer": {"channels": width},
        "Upsample1D": {"channels": width, "out_channels": width},
    }

    def sized(module: Any, sizes: dict[str, dict[str, Any]]) -> dict[str, Callable]:
        def fix(build: type, fixed: dict[str, Any]) -> Callable:
            return lambda **given: build(**(given | fixed))

        return {name: fix(getattr(module, name), fixed) for name, fixed in sizes.items()}

    left_out = mock.Mock(side_effect=lambda *args, **kwargs: torch.nn.Identity())
    with (
        mock.patch.multiple(s3gen, S3Tokenizer=left_out, CAMPPlus=left_out),
        mock.patch.multiple(upsample_encoder, **sized(upsample_encoder, encoder_sizes)),
        mock.patch.multiple(s3gen, **sized(s3gen, s3gen_sizes)),
    ):
        yield


def mel(model: s3gen.S3Token2Wav, request: Request) -> np.ndarray:
    """[80, frames] from the request's noise [80, prompt frames + frames]."""
    tokens, prompt = request["speech_tokens"][1:].tolist(), request["prompt_token"].tolist()
    noise = torch.from_numpy(request["mel_noise"])[None]
    with mock.patch.object(torch, "randn_like", return_value=noise.clone()):
        found, _ = model.flow.inference(
            token=torch.tensor([tokens]),
            token_len=torch.tensor([len(tokens)]),
            prompt_token=torch.tensor([prompt]),
            prompt_token_len=torch.tensor([len(prompt)]),
            prompt_feat=torch.from_numpy(request["prompt_feat"])[None],
            prompt_feat_len=None,
            embedding=torch.from_numpy(request["embedding"])[None],
            finalize=True,
            n_timesteps=int(request["steps"]),
            meanflow=model.meanflow,
        )
    return found[0].numpy()


def vocode(model: s3gen.S3Token2Wav, request: Request) -> np.ndarray:
    """[480 frames] of the request's mel, with its phases [9] and noise [9, samples]."""
    noise = torch.from_numpy(request["source_noise"])[None]
    phase = torch.from_numpy(request["phase"])[None, :, None]

    def given(like: torch.Tensor) -> torch.Tensor:
        # The other noise it draws, of another shape, is not used.
        return noise if like.shape == noise.shape else torch.zeros_like(like)

    with (
        mock.patch.object(Uniform, "sample", return_value=phase),
        mock.patch.object(torch, "randn_like", given),
    ):
        samples, _ = model.mel2wav.inference(torch.from_numpy(request["vocoded_mel"])[None])
    return samples[0].numpy()


if __name__ == "__main__":
    main()
