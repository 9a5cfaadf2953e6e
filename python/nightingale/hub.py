"""Checkpoints from the Hugging Face hub."""

from __future__ import annotations

import re
from pathlib import Path

from ._core import Error
from .checkpoint import FAMILIES, SETTINGS_FILE, VOICE_FILES, find_checkpoint

DEFAULT_REPOSITORY = "ResembleAI/chatterbox"

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def is_hub_id(text: str) -> bool:
    """Whether `text` reads as owner/name."""
    return _HUB_ID.fullmatch(text) is not None


def download(repository: str, offline: bool = False, progress: bool | None = None) -> Path:
    """The local folder of a hub repository's checkpoint, fetched where it is not there yet.

    `offline` uses only what an earlier download left; `progress` False hides the progress bars.
    """
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    quiet = progress is False
    try:
        names = None if offline else HfApi().list_repo_files(repository)
        folder = snapshot_download(
            repository,
            allow_patterns=_wanted(names),
            local_files_only=offline,
            **({"tqdm_class": _silent_tqdm()} if quiet else {}),
        )
    except GatedRepoError as error:
        raise Error(
            f"{repository} asks for a login: run `hf auth login`, accept its terms, try again"
        ) from error
    except RepositoryNotFoundError as error:
        raise Error(
            f"the hub has no repository {repository!r} that you can read; check the name"
        ) from error
    except (LocalEntryNotFoundError, OfflineModeIsEnabled) as error:
        raise Error(
            f"{repository} has not been downloaded and the hub was not asked (offline); "
            "load it once with a network, or give the path of a local folder"
        ) from error
    except OSError as error:  # what every HTTP client's connection errors derive from
        raise _no_network(repository) from error
    except Exception as error:
        if _is_connection_error(error):
            raise _no_network(repository) from error
        raise
    return Path(folder)


def _wanted(names: list[str] | None) -> list[str]:
    """The files of the first family that the repository has, so that no other model is fetched."""
    shared = [SETTINGS_FILE, *VOICE_FILES]
    for family in FAMILIES:
        found = [name for name in family.t3 if names is not None and name in names]
        if found:
            return [found[0], family.tokenizer, *shared]
    # Offline nothing is fetched, so the patterns do not matter; otherwise the listing has no model.
    if names is not None:
        expected = ", ".join(family.t3[0] for family in FAMILIES)
        raise Error(f"the repository has no T3 checkpoint; expected one of {expected}")
    return [name for family in FAMILIES for name in (*family.t3, family.tokenizer)] + shared


def _silent_tqdm() -> type:
    from tqdm import tqdm

    class SilentTqdm(tqdm):
        def __init__(self, *args, **kwargs) -> None:
            kwargs["disable"] = True
            kwargs.pop("name", None)  # the hub's own argument for grouping bars
            super().__init__(*args, **kwargs)

    return SilentTqdm


def _is_connection_error(error: Exception) -> bool:
    """huggingface_hub changed its HTTP client more than once; their errors share these names."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return bool(kinds & {"TransportError", "ConnectionError", "ConnectError", "TimeoutException"})


def _no_network(repository: str) -> Error:
    return Error(
        f"cannot reach the hub to fetch {repository}; check the network, or pass offline=True to "
        "use an earlier download, or give the path of a local folder"
    )


def resolve(model: str | Path, offline: bool = False, progress: bool | None = None) -> Path:
    """The folder of a model given as a path or as a hub id; a path that exists wins."""
    path = Path(model).expanduser()
    if path.is_dir():
        return path
    if path.exists():
        raise Error(f"{path} is a file; expected the folder that holds the checkpoint's files")
    if is_hub_id(str(model)):
        folder = download(str(model), offline, progress)
        find_checkpoint(folder)
        return folder
    raise Error(f"there is no folder {path}, and it is not a hub id (owner/name)")
