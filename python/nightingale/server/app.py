"""The application: routes, their guard and the life of the engine."""

from __future__ import annotations

import mimetypes
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio.to_thread
from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from ..loading import load
from ..voice_folder import VoiceFolder
from . import conversion, live, resources, speech
from .access_log import AccessLog
from .context import Server, Settings
from .errors import add_error_handlers
from .guard import Guard
from .jobs import EngineThread
from .metrics import CountAnswers, Metrics
from .speech import IGNORED_HEADER, LANGUAGE_HEADER, UNSPOKEN_HEADER
from .tolerance import JsonByDefault

PAGE = Path(__file__).parent / "page"
PAGES = {"/": "index.html", "/docs": "docs.html"}
PAGE_POLICY = "default-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:"


def make_engine(settings: Settings) -> EngineThread:
    """The engine of a server, not yet started."""
    return EngineThread(
        lambda: load(settings.model, settings.load),
        queue=settings.max_queue,
        running=settings.max_concurrent,
        unload_after=settings.unload_after,
    )


def create_app(
    settings: Settings,
    engine: EngineThread | None = None,
    wyoming_listener: socket.socket | None = None,
) -> FastAPI:
    """The server as an ASGI application. A given engine has been started; without one the
    application starts its own, and stops either when it ends. wyoming_listener: where it also
    speaks the Wyoming protocol."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if engine is None:
            await anyio.to_thread.run_sync(server.engine.start)
        server.metrics.watch(server.engine)
        async with _wyoming(server, wyoming_listener):
            yield
        await anyio.to_thread.run_sync(server.engine.stop)

    app = FastAPI(
        title="Nightingale",
        version=version("nightingale-tts"),
        summary="Text-to-speech on your own machine, with OpenAI's interface.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    voices = VoiceFolder(settings.voices)
    server = Server(settings, engine or make_engine(settings), voices, Metrics())
    app.state.server = server
    add_error_handlers(app)
    for router in (
        speech.router,
        conversion.router,
        live.router,
        resources.voices,
        resources.router,
    ):
        app.include_router(router)

    @app.get("/page/options.json", include_in_schema=False)
    def page_options() -> list[dict[str, Any]]:
        facts = server.engine.facts
        return speech.controls(facts.defaults, facts.ignored_options)

    mimetypes.add_type("text/javascript", ".js")  # some systems say otherwise, browsers insist
    app.mount("/page", StaticFiles(directory=PAGE))

    for path, file in PAGES.items():
        app.add_api_route(path, _page(PAGE / file), include_in_schema=False)

    app.add_middleware(JsonByDefault)
    app.add_middleware(Guard, settings=settings)
    if settings.allowed_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.allowed_origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=[IGNORED_HEADER, LANGUAGE_HEADER, UNSPOKEN_HEADER],
        )
    app.add_middleware(CountAnswers, metrics=server.metrics)
    if settings.access_log:
        app.add_middleware(AccessLog)
    if settings.trusted_proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=list(settings.trusted_proxies))
    return app


def _wyoming(server: Server, listener: socket.socket | None) -> AbstractAsyncContextManager[None]:
    if listener is None:
        return nullcontext()
    from .wyoming import listening  # its package is an extra

    return listening(server, listener)


def _page(file: Path) -> Callable[[], Awaitable[FileResponse]]:
    async def page() -> FileResponse:
        return FileResponse(file, headers={"Content-Security-Policy": PAGE_POLICY})

    return page
