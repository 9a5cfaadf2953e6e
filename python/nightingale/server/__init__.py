"""The server: OpenAI's speech interface over one loaded model."""

from .app import create_app
from .context import Settings

__all__ = ["Settings", "create_app"]
