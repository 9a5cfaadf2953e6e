"""Counts for Prometheus."""

from __future__ import annotations

import os
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .jobs import EngineThread

# Set by `serve --workers` for prometheus_client, which then keeps the counts of all workers there.
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"

SECONDS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 10, 30, 60)
FACTORS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 5, 10)


class Metrics:
    """Requests, waiting times and speech of one server."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        counter = partial(Counter, registry=registry)
        histogram = partial(Histogram, registry=registry)
        self.requests = counter("nightingale_requests", "Answers", ["route", "status"])
        self.refused = counter("nightingale_refused", "Requests refused by a full queue")
        self.cancelled = counter("nightingale_cancelled", "Requests that their clients gave up")
        self.speech = counter("nightingale_speech_seconds", "Seconds of speech made")
        self.tokens = counter("nightingale_speech_tokens", "Speech tokens made")
        self.first_sound = histogram(
            "nightingale_first_sound_seconds", "From a request to its first sound", buckets=SECONDS
        )
        self.real_time_factor = histogram(
            "nightingale_real_time_factor",
            "Seconds from a request to its end by second of its speech",
            buckets=FACTORS,
        )
        self._state = {
            name: Gauge(f"nightingale_{name}", text, registry=registry, multiprocess_mode="livesum")
            for name, text in (
                ("running", "Requests that take turns"),
                ("running_limit", "Requests that take turns at most"),
                ("session_bytes", "Memory that the requests that take turns have at most"),
                ("waiting", "Requests that wait"),
                ("loaded", "Models in memory"),
            )
        }
        self._cache = {
            name: Gauge(
                f"nightingale_cache_{name}", text, registry=registry, multiprocess_mode="livesum"
            )
            for name, text in (
                ("hits", "Sentences that were played from the cache"),
                ("misses", "Sentences that were not in the cache"),
                ("sentences", "Sentences in the cache"),
                ("bytes", "Memory of the cached sentences"),
            )
        }

    def text(self, engine: EngineThread) -> bytes:
        """All counts as Prometheus reads them."""
        self.watch(engine)
        if SHARED_FOLDER not in os.environ:
            return generate_latest(self._registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
        return generate_latest(shared)

    def watch(self, engine: EngineThread) -> None:
        """Brings the gauges up to date: other workers tell of this one by what it last knew."""
        for name, gauge in self._state.items():
            gauge.set(getattr(engine, name))
        counts = engine.cache_counts
        for name, gauge in self._cache.items():
            gauge.set(counts.get(name, 0))


class CountAnswers:
    """Counts every answer by its route, which scanners cannot multiply, and status."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "other")
                self.metrics.requests.labels(route, message["status"]).inc()
            await send(message)

        await self.app(scope, receive, counted)
