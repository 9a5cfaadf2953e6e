"""`mcp`: tools for assistants, over standard input and output."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._core import Error
from ..user_folders import user_folder
from ..voice_folder import VoiceFolder
from .options import Arguments, add_shared
from .outputs import NoSpeakersError, speakers


def default_folder() -> Path:
    return user_folder("Application Support", "XDG_DATA_HOME", ".local/share") / "speech"


def add_commands(commands: Any) -> None:
    mcp = commands.add_parser(
        "mcp", help="be a tool of assistants: the Model Context Protocol over standard input"
    )
    mcp.add_argument(
        "--folder",
        type=Path,
        help="the only folder that files are written to (default: speech, in the user's data "
        "folder)",
    )
    mcp.add_argument("--voices", type=Path, metavar="FOLDER", help="instead of the user's voices")
    add_shared(mcp, json=None)
    mcp.set_defaults(run=_mcp)


def _mcp(args: Arguments) -> None:
    try:
        from ..mcp_server import Speech, make_server
    except ModuleNotFoundError as error:
        raise ValueError(f"this needs {error.name}: pip install 'nightingale-tts[mcp]'") from None
    folder = (args.folder or default_folder()).absolute()
    tts = args.load_model()
    make_server(Speech(tts, VoiceFolder(args.voices), folder, _speakers)).run("stdio")


@contextmanager
def _speakers() -> Iterator[Callable[[np.ndarray], None]]:
    try:
        with speakers() as write:
            yield write
    except NoSpeakersError as reason:
        raise Error(f"cannot play: {reason}") from reason
