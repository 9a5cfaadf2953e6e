"""The server on a Ray cluster: replicas of the same application behind one address.

`serve run nightingale.ray:app model=FOLDER replicas=2`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel, Field, TypeAdapter
from ray import serve

from .checkpoint import find_checkpoint
from .hub import resolve
from .server import Settings, create_app
from .server.app import make_engine
from .server.settings import LOOPBACK_NAMES

# What of the settings is not given as it is: made of other arguments, or of no effect because the
# connections are Ray's.
_NOT_GIVEN = ("load", "key", "hosts", "stall_timeout")
_GIVEN = tuple(field.name for field in fields(Settings) if field.name not in _NOT_GIVEN)
# Requests of a replica besides those that speak or wait to: refusals, pages, open WebSockets.
_OTHERS = 100


class Arguments(BaseModel, extra="forbid"):
    """What `app` takes besides the settings of a server."""

    replicas: int = Field(1, ge=1)
    dtype: str | None = None
    kv_bits: int | None = None
    kv_budget: float | None = None
    device: str = "auto"
    threads: int | None = Field(None, ge=1)
    offline: bool = False
    key_file: Path | None = None
    let_anyone_in: bool = False


def app(args: Mapping[str, Any]) -> serve.Application:
    """A Serve application of these arguments, which may be words: docs/cluster.md lists them."""
    given = {name: value for name, value in args.items() if name in _GIVEN}
    own = Arguments(**{name: value for name, value in args.items() if name not in _GIVEN})
    settings = server_settings(given, own)
    # A model that is not there is told here, once, and not by every replica again and again.
    find_checkpoint(resolve(settings.model, own.offline, False))

    def build() -> FastAPI:
        engine = make_engine(settings)
        engine.start()
        return create_app(settings, engine)

    deployment = serve.deployment(
        serve.ingress(build)(_Replica),
        name="Nightingale",
        num_replicas=own.replicas,
        # More than the server lets wait, so that it refuses with a status of its own.
        max_ongoing_requests=settings.running + settings.queue + _OTHERS,
        ray_actor_options={
            "num_cpus": own.threads or 1,
            "num_gpus": 1 if own.device == "gpu" else 0,
        },
    )
    return deployment.bind()


def server_settings(given: Mapping[str, Any], own: Arguments) -> Settings:
    """The settings of each replica's server. Paths are made whole: replicas run elsewhere."""
    paths = {name: Path(given[name]).absolute() for name in ("model", "voices") if name in given}
    if "model" in paths and not paths["model"].is_dir():
        del paths["model"]  # a hub's id
    load = own.model_dump(include={"dtype", "kv_bits", "kv_budget", "device", "threads", "offline"})
    key = own.key_file.read_text().strip() if own.key_file is not None else None
    hosts = None if key is not None or own.let_anyone_in else LOOPBACK_NAMES
    return TypeAdapter(Settings).validate_python(
        {
            **given,
            **{name: str(path) for name, path in paths.items()},
            "load": {**load, "progress": False},
            "key": key,
            "hosts": hosts,
        }
    )


class _Replica:
    """One process with the model."""

    app: FastAPI  # Ray's wrapper keeps it here

    def check_health(self) -> None:
        """Called by Ray, which replaces a replica that raises."""
        if not self.app.state.server.engine.alive:
            raise RuntimeError("the engine's thread has ended")
