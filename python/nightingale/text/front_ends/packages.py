"""Packages of the `languages` extra: imported when used, missing or failing in plain words."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from ..._core import Error

INSTALL = 'pip install "nightingale-tts[languages]"'

FrontEnd = Callable[[str], str]
Value = TypeVar("Value")

logger = logging.getLogger(__name__)

_warned: set[tuple[str, str]] = set()  # language and kind of error, once a process
_warning = threading.Lock()


class Once(Generic[Value]):
    """A value made on first use, by one thread; where that fails the next use tries again."""

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
    """The refusal of a language that cannot be read without its package."""
    return Error(f"{language} text needs the package {package} ({error}): {INSTALL}")


class BestEffort:
    """A front-end that leaves text as it is, with one warning a cause, where its package fails.

    A package that does not start is not tried again: it may spend seconds looking for a network.
    """

    def __init__(
        self, language: str, marks: str, install: str, needs: str, start: Callable[[], FrontEnd]
    ) -> None:
        self._language = language
        self._without = f"{language} is spoken without {marks}"
        self._install = install
        self._needs = needs
        self._front_end = Once(lambda: self._started(start))

    def __call__(self, text: str) -> str:
        front_end = self._front_end()
        if front_end is None:
            return text
        try:
            return front_end(text)
        except Exception as error:  # whatever a package may raise
            self._warn(error, f"{self._without} where its package fails: {error!r}")
            return text

    def _started(self, start: Callable[[], FrontEnd]) -> FrontEnd | None:
        try:
            return start()
        except ImportError as error:
            self._warn(error, f"{self._without} ({error}): {self._install}")
        except Exception as error:  # whatever a package may raise
            self._warn(
                error, f"{self._without}, its package does not start ({error}): {self._needs}"
            )
        return None

    def _warn(self, error: Exception, message: str) -> None:
        cause = (self._language, type(error).__name__)
        with _warning:
            if cause in _warned:
                return
            _warned.add(cause)
        logger.warning("%s", message)
