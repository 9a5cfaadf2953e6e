"""What the server has and how it is: /v1/models, /health and /metrics."""

from __future__ import annotations

from importlib.metadata import version
from typing import Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from ..audio import SAMPLE_RATE
from .context import Server, ServerContext
from .errors import described
from .settings import MODEL_NAME
from .speech_request import check_model

router = APIRouter(tags=["server"])


class ModelObject(BaseModel):
    """The loaded model."""

    id: str = MODEL_NAME
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "nightingale"
    languages: dict[str, str]
    sample_rate: int = SAMPLE_RATE
    max_input_characters: int
    can_bake: bool


class ModelList(BaseModel):
    """All models: the one."""

    object: Literal["list"] = "list"
    data: list[ModelObject]


class Health(BaseModel):
    """How the server is."""

    status: Literal["ok", "failed"]
    version: str
    model: str = MODEL_NAME
    loaded: bool
    running: int
    waiting: int
    queue: int


@router.get("/v1/models", responses=described(401))
def list_models(server: ServerContext) -> ModelList:
    """The models that `model` can name."""
    return ModelList(data=[_model(server)])


@router.get("/v1/models/{id}", responses=described(401, 404))
def get_model(id: str, server: ServerContext) -> ModelObject:
    """One model; OpenAI's names are the same one."""
    check_model(id)
    return _model(server)


@router.get("/health", responses={503: {"model": Health}})
def health(server: ServerContext) -> Response:
    """Whether the server works, and how busy it is."""
    engine = server.engine
    found = Health(
        status="ok" if engine.alive else "failed",
        version=version("nightingale-tts"),
        loaded=engine.loaded,
        running=engine.running,
        waiting=engine.waiting,
        queue=engine.queue_limit,
    )
    return JSONResponse(found.model_dump(), 200 if engine.alive else 503)


@router.get("/metrics", response_class=Response, responses=described(401))
def metrics(server: ServerContext) -> Response:
    """Counts for Prometheus."""
    return Response(server.metrics.text(server.engine), media_type=CONTENT_TYPE_LATEST)


def _model(server: Server) -> ModelObject:
    facts = server.engine.facts
    return ModelObject(
        languages=facts.languages,
        max_input_characters=server.settings.max_characters,
        can_bake=facts.bakes_voices,
    )
