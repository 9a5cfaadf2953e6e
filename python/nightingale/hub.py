"""Checkpoints from the Hugging Face hub."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ._core import Error
from .checkpoint import (
    CANGJIE_TABLE,
    TOKENIZER_COPY,
    VOICE_ENCODER_FILES,
    VOICE_FILES,
    Checkpoint,
    embedded_model,
    find_checkpoint,
)
from .family import (
    GPT2_TOKENIZER,
    MEMBERS,
    MULTILINGUAL_TOKENIZER,
    S3GEN_FILES,
    Member,
    choose,
    t3_files,
)
from .mlx_files import CONFIG_FILE, MODEL_FILE, converted_member, read_config
from .model_settings import SETTINGS_FILE
from .option import shown

_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*", re.ASCII)


def is_hub_id(text: str) -> bool:
    """Whether `text` reads as owner/name."""
    return _HUB_ID.fullmatch(text) is not None


def download(
    repository: str,
    offline: bool = False,
    progress: bool | None = None,
    variant: str | None = None,
) -> Path:
    """The local folder of a hub repository's checkpoint, fetched where it is not there yet.

    `offline` uses only what an earlier download left; `progress` False hides the progress bars;
    `variant` is the member to fetch of several.
    """
    from huggingface_hub import snapshot_download

    with _asking(repository, offline) as offline:
        names = _cached_names(repository) if offline else _listed_names(repository)
        if _is_conversion(names):
            _converted_member(repository, offline)  # before gigabytes of another kind of model
        folder = snapshot_download(
            repository,
            allow_patterns=_wanted(repository, names, variant),
            local_files_only=offline,
            tqdm_class=_silent_tqdm() if progress is False else None,
        )
    return Path(folder)


def variants(repository: str, offline: bool = False) -> dict[str, str]:
    """The T3 files that a hub repository holds by variant, the default one first."""
    with _asking(repository, offline) as offline:
        names = _cached_names(repository) if offline else _listed_names(repository)
        if _is_conversion(names):
            return {_converted_member(repository, offline).variant: MODEL_FILE}
    found = t3_files(names)
    choose(found, None, repository)  # an Error where there are none
    return found


def _is_conversion(names: list[str]) -> bool:
    return not t3_files(names) and {MODEL_FILE, CONFIG_FILE} <= set(names)


def _converted_member(repository: str, offline: bool) -> Member:
    """Which member a repository of mlx-community has, by its configuration alone."""
    from huggingface_hub import snapshot_download

    folder = Path(
        snapshot_download(repository, allow_patterns=[CONFIG_FILE], local_files_only=offline)
    )
    return converted_member(read_config(folder), folder / CONFIG_FILE)


@contextmanager
def _asking(repository: str, offline: bool) -> Iterator[bool]:
    """Gives whether to stay offline, and turns what goes wrong at the hub into an Error."""
    from huggingface_hub import constants
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    offline = offline or constants.HF_HUB_OFFLINE
    try:
        yield offline
    except GatedRepoError as error:
        raise Error(
            f"{repository} asks for a login: run `hf auth login`, accept its terms, try again"
        ) from error
    except RepositoryNotFoundError as error:
        raise Error(
            f"the hub has no repository {repository!r} that you can read; check the name"
        ) from error
    except LocalEntryNotFoundError as error:
        if not offline:
            raise _no_network(repository) from error
        raise Error(
            f"{repository} has not been downloaded, or not wholly, and the hub was not asked "
            "(offline); load it once with a network, or give the path of a local folder"
        ) from error
    except HfHubHTTPError as error:
        raise Error(f"the hub cannot give {repository}: {' '.join(str(error).split())}") from error
    except Exception as error:
        if _is_connection_error(error):
            raise _no_network(repository) from error
        raise


def _listed_names(repository: str) -> list[str]:
    from huggingface_hub import HfApi

    # Not list_repo_files: without a network that one tries for half a minute.
    return [file.rfilename for file in HfApi().model_info(repository).siblings or []]


def _cached_names(repository: str) -> list[str]:
    from huggingface_hub import snapshot_download

    # Given patterns, it would ask for the files of every family that matches them.
    folder = snapshot_download(repository, allow_patterns=[], local_files_only=True)
    return [path.name for path in Path(folder).iterdir()]


def _wanted(repository: str, names: list[str], variant: str | None = None) -> list[str]:
    """The files of one member among `names`, so that no other model is fetched."""
    if _is_conversion(names):
        copies = [name for name in (TOKENIZER_COPY, MULTILINGUAL_TOKENIZER) if name in names]
        files = [MODEL_FILE, CONFIG_FILE, *copies[:1], CANGJIE_TABLE]
        files += [name for name in GPT2_TOKENIZER if name in names]
        return [*files, SETTINGS_FILE, *VOICE_FILES]
    t3 = choose(t3_files(names), variant, repository)
    named = next((member for member in MEMBERS if t3 in member.t3), None)
    encoder = [name for name in VOICE_ENCODER_FILES if name in names][:1]
    shared = [*encoder, *VOICE_FILES]
    if named is None:  # its tensors tell which member it is once they are here
        tokenizers = {name for member in MEMBERS for name in member.tokenizer_files}
        other = {*tokenizers, *S3GEN_FILES, CANGJIE_TABLE}
        return [t3, SETTINGS_FILE, *sorted(other & set(names)), *shared]
    cangjie = [CANGJIE_TABLE] if named.multilingual else []
    s3gen = [name for name in named.s3gen if name in names][:1]
    return [t3, *named.tokenizer_files, *cangjie, SETTINGS_FILE, *s3gen, *shared]


def _silent_tqdm() -> type:
    from tqdm import tqdm

    class SilentTqdm(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs["disable"] = True
            kwargs.pop("name", None)  # the hub's own argument for grouping bars
            super().__init__(*args, **kwargs)

    return SilentTqdm


def _is_connection_error(error: Exception) -> bool:
    """huggingface_hub changed its HTTP client more than once; their errors share these names."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return bool(kinds & {"TransportError", "ConnectionError", "Timeout", "TimeoutError"})


def _no_network(repository: str) -> Error:
    return Error(
        f"cannot reach the hub to fetch {repository}; check the network, or pass offline=True to "
        "use an earlier download, or give the path of a local folder"
    )


def resolve(
    model: str | Path | None,
    offline: bool = False,
    progress: bool | None = None,
    variant: str | None = None,
) -> Path:
    """The folder of a model given as a path or as a hub id, where a path that exists wins; None is
    the model that comes with the package. variant: what is fetched of a hub's repository"""
    if model is None:
        if (folder := embedded_model()) is not None:
            return folder
        raise Error(
            "no model was named and this installation carries none: give a folder, or a hub id "
            "such as ResembleAI/chatterbox"
        )
    if not isinstance(model, (str, Path)) or not str(model):
        raise ValueError(f"the model must be a folder or a hub id, not {shown(model)}")
    path = Path(os.path.expanduser(model))
    if os.path.isdir(path):  # Path.is_dir raises for a name that is too long
        return path
    if os.path.exists(path):
        raise Error(f"{path} is a file; expected the folder that holds the checkpoint's files")
    if is_hub_id(str(model)):
        return download(str(model), offline, progress, variant)
    raise Error(f"there is no folder {path}, and it is not a hub id (owner/name)")


def find_model(
    model: str | Path | None,
    offline: bool = False,
    progress: bool | None = None,
    variant: str | None = None,
) -> Checkpoint:
    """The files of a model given as `resolve` takes it."""
    return find_checkpoint(resolve(model, offline, progress, variant), variant)
