"""Packages of the `languages` extra, which are imported when they are first used."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from ..._core import Error

INSTALL = 'pip install "nightingale-tts[languages]"'

FrontEnd = Callable[[str], str]
Value = TypeVar("Value")


class Once(Generic[Value]):
    """A value created on first use, by one thread; after a failure the next use tries again."""

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make = make
        self._made: list[Value] = []
        self._lock = threading.Lock()

    def __call__(self) -> Value:
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]


def missing(language: str, package: str, error: ImportError) -> Error:
    """The error for a language that needs a package which is not installed."""
    return Error(f"{language} text needs the package {package} ({error}): {INSTALL}")
