"""uvicorn's server, which ends when it can no longer speak."""

from __future__ import annotations

import logging

import uvicorn

logger = logging.getLogger(__name__)


class HttpServer(uvicorn.Server):
    """Runs until a signal ends it, or until its engine has failed; `status` tells which."""

    status = 0

    async def on_tick(self, counter: int) -> bool:
        engine = self.config.loaded_app.state.server.engine
        if engine.failed and not self.status:
            self.status = 1
            logger.error("the server ends, because its engine has failed")
        return await super().on_tick(counter) or self.status != 0
