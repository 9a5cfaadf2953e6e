"""What the routes share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from .engine_thread import EngineThread
from .errors import ApiError, api_error
from .fair_queue import QueueFullError
from .job import Job, Work
from .known_voices import KnownVoices
from .metrics import Metrics
from .settings import Settings


@dataclass(frozen=True)
class Server:
    """One server: its settings, engine, voices and counts."""

    settings: Settings
    engine: EngineThread
    voices: KnownVoices
    metrics: Metrics

    def submit(self, connection: HTTPConnection, work: Work) -> Job:
        """Puts work in the queue under the client's address; ApiError where it is full."""
        job = Job(connection.client.host if connection.client else "", work)
        try:
            self.engine.submit(job)
        except Exception as error:
            raise self.told(error) from error
        return job

    def told(self, error: Exception) -> ApiError:
        """What the client hears of an error."""
        if isinstance(error, QueueFullError):
            self.metrics.refused.inc()
        return api_error(error, self.engine.retry_after())


def _server(connection: HTTPConnection) -> Server:
    return connection.app.state.server


ServerContext = Annotated[Server, Depends(_server)]
