"""Russian: the stress of words, which is not written, put in."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from .packages import BestEffort, FrontEnd

_INSTALL = "pip install git+https://github.com/Vuizur/add-stress-to-epub"
_NEEDS = "it fetches its dictionary on first use"


def add_stress(text: str) -> str:
    """Adds stress marks where russian_text_stresser is installed and has its dictionary."""
    return _thread.submit(_stresser, text).result()


def _start() -> FrontEnd:
    from russian_text_stresser.text_stresser import RussianTextStresser

    return RussianTextStresser().stress_text


def _best_effort() -> FrontEnd:
    return BestEffort("Russian", "stress marks", _INSTALL, _NEEDS, _start)


_stresser = _best_effort()
# The package's SQLite connection serves only the thread that opened it.
_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="russian-stress")
