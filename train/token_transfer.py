"""Adapts a T3 or a flow to the tokens of another speech tokenizer, to resume training from it.

    python -m train.token_transfer EARLIER_TOKENS.npz TOKENS.npz WEIGHTS OUT

Both files have the tokens of the same corpus, one by the tokenizer that WEIGHTS (t3.safetensors or
flow.safetensors) were trained with, one by the other. A token's row of each table becomes the mean
of the rows that the earlier tokenizer's tokens at the same places had.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .networks.flow import PREFIX as FLOW_PREFIX
from .networks.speech_tokenizer import CODES
from .options import command_parser
from .state import load_stage, save_stage

# Tensors with one row per token; rows after those of speech belong to start and stop.
TABLES = ("speech_emb.weight", "speech_head.weight", f"{FLOW_PREFIX}input_embedding.weight")


def mean_rows(table: Tensor, earlier: Tensor, tokens: Tensor) -> Tensor:
    """The table for `tokens`. Tokens that never occur get the mean of all.

    table: [CODES or more, C]; earlier, tokens: [N] of the same places
    """
    found = table.float()
    sums = torch.zeros(CODES, table.shape[1]).index_add_(0, tokens, found[earlier])
    counts = torch.bincount(tokens, minlength=CODES)[:, None]
    means = torch.where(counts > 0, sums / counts.clamp_min(1), sums.sum(0) / len(tokens))
    return torch.cat((means, found[CODES:])).to(table.dtype)


def transfer(earlier_tokens: Path, tokens: Path, weights: Path, out: Path) -> None:
    with np.load(earlier_tokens) as earlier, np.load(tokens) as later:
        if not np.array_equal(earlier["starts"], later["starts"]):
            raise SystemExit(f"{earlier_tokens} and {tokens} are not of the same corpus")
        places = [torch.from_numpy(file["tokens"].astype(np.int64)) for file in (earlier, later)]
    tensors, facts = load_stage(weights)
    changed = {name: mean_rows(tensors[name], *places) for name in TABLES if name in tensors}
    if not changed:
        raise SystemExit(f"{weights} has no table of speech tokens")
    dtype = next(iter(changed.values())).dtype
    save_stage(out.parent, out.stem, tensors | changed, facts, dtype)


def main(arguments: list[str]) -> None:
    parser = command_parser("token_transfer", __doc__, "earlier_tokens", "tokens", "weights", "out")
    transfer(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
