"""The server on a Ray cluster: replicas of the same application behind one address.

`serve run nightingale.ray:app model=FOLDER replicas=2`
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, create_model

from .hub import find_model
from .option import Option, Options, names_of, options_of
from .options import LoadOptions, ServerOptions
from .server import Settings, create_app
from .server.app import make_engine
from .server.context import LOOPBACK_NAMES

if TYPE_CHECKING:
    from ray import serve

# Requests of a replica besides those that speak or wait to: refusals, pages, open WebSockets.
_OTHERS = 100


def _fields(kind: type[Options]) -> dict[str, Any]:
    return {each.name: (_type(each), each.default) for each in options_of(kind, "ray")}


def _type(option: Option) -> Any:
    kind: Any = option.plain_type
    if option.several:
        kind = kind | list[kind]
    return kind | None if option.optional else kind


Arguments = create_model(
    "Arguments",
    __config__=ConfigDict(extra="forbid"),
    __doc__="What `app` takes; the options check themselves when the settings are made.",
    model=(str | None, None),
    replicas=(int, Field(1, ge=1)),
    key_file=(Path | None, None),
    allow_unauthenticated=(bool, False),
    **_fields(LoadOptions),
    **_fields(ServerOptions),
)


def app(args: Mapping[str, Any]) -> serve.Application:
    """A Serve application. Arguments may be strings; docs/reference/ray.md lists them."""
    own = Arguments(**args)
    settings = server_settings(own)
    # A model that is not there is told here, once, and not by every replica again and again.
    find_model(settings.model, settings.load.offline, False, settings.load.variant)

    from ray import serve

    def build() -> FastAPI:
        engine = make_engine(settings)
        engine.start()
        return create_app(settings, engine)

    deployment = serve.deployment(
        serve.ingress(build)(_Replica),
        name="Nightingale",
        num_replicas=own.replicas,
        # More than the server lets wait, so that it refuses with a status of its own.
        max_ongoing_requests=settings.max_concurrent + settings.max_queue + _OTHERS,
        ray_actor_options={
            "num_cpus": settings.load.threads or 1,
            "num_gpus": 1 if settings.load.device == "gpu" else 0,
        },
    )
    return deployment.bind()


def server_settings(own: BaseModel) -> Settings:
    """The settings of each replica's server. Paths are made absolute: replicas run elsewhere."""
    given = own.model_dump()
    model = given["model"]
    if model is not None and Path(model).is_dir():  # else a hub's id
        model = str(Path(model).absolute())
    if given["voices"] is not None:
        given["voices"] = given["voices"].absolute()
    key = given["key_file"].read_text().strip() if given["key_file"] is not None else None
    return Settings(
        model=model,
        load=LoadOptions(
            progress=False, **{name: given[name] for name in names_of(LoadOptions, "ray")}
        ),
        key=key,
        hosts=None if key is not None or given["allow_unauthenticated"] else LOOPBACK_NAMES,
        **{name: given[name] for name in names_of(ServerOptions, "ray")},
    )


class _Replica:
    """One process with the model."""

    app: FastAPI  # Ray's wrapper keeps it here

    def check_health(self) -> None:
        """Called by Ray, which replaces a replica that raises."""
        if not self.app.state.server.engine.alive:
            raise RuntimeError("the engine's thread has ended")
