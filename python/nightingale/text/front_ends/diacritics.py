"""Adds the vowels of Hebrew and the stress marks of Russian, which are rarely written."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from ...checkpoint import DICTA_MODELS
from .packages import INSTALL, FrontEnd, Once

_RUSSIAN_INSTALL = "pip install git+https://github.com/Vuizur/add-stress-to-epub"
_RUSSIAN_NEEDS = "it fetches its dictionary on first use"

logger = logging.getLogger(__name__)

_warned: set[tuple[str, str]] = set()  # language and kind of error, once a process
_warning = threading.Lock()


class BestEffort:
    """A front-end that returns the text unchanged if its package fails, and warns once per cause.

    A package that fails to load is not tried again: it may wait seconds for a network.
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


def hebrew(model: Path | None) -> FrontEnd:
    """Adds diacritics where dicta_onnx is installed and has its model."""
    needs = f"it needs {DICTA_MODELS[0]} in the checkpoint's folder, see docs/text.md"
    return BestEffort("Hebrew", "diacritics", INSTALL, needs, partial(_load_dicta, model))


def _load_dicta(model: Path | None) -> FrontEnd:
    from dicta_onnx import Dicta

    dicta = Dicta() if model is None else Dicta(str(model))
    return dicta.add_diacritics


def add_stress(text: str) -> str:
    """Adds stress marks where russian_text_stresser is installed and has its dictionary."""
    return _thread.submit(_stresser, text).result()


def _load_stresser() -> FrontEnd:
    from russian_text_stresser.text_stresser import RussianTextStresser

    return RussianTextStresser().stress_text


def _best_effort() -> FrontEnd:
    return BestEffort("Russian", "stress marks", _RUSSIAN_INSTALL, _RUSSIAN_NEEDS, _load_stresser)


_stresser = _best_effort()
# The package's SQLite connection serves only the thread that opened it.
_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="russian-stress")
