"""`tokens`: what T3 says to a text."""

from __future__ import annotations

import argparse
import json
from typing import Any

from .options import (
    CHUNKS,
    SOUND,
    add_json,
    add_model_options,
    add_speech_options,
    add_text_options,
    load_model,
    read_text,
    speech_options,
)


def add_commands(commands: Any) -> None:
    tokens = commands.add_parser("tokens", help="print the speech tokens of a text")
    add_text_options(tokens)
    add_json(tokens, "print one JSON list")
    add_model_options(tokens)
    add_speech_options(tokens, without=(CHUNKS, SOUND))
    tokens.set_defaults(run=_tokens)


def _tokens(args: argparse.Namespace) -> None:
    text = read_text(args)
    tts = load_model(args)
    stream = tts.iter_speech_tokens(text, speech_options(args, tts))
    if args.json:
        print(json.dumps(list(stream)))
        return
    for token in stream:
        print(token, end=" ", flush=True)
    print()
