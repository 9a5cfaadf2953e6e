"""Language tags as users and programs write them: `es`, `es-ES`, `pt_BR`, `zh-Hans-CN`."""

from __future__ import annotations

import re

_TAG = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9]{1,8})*", re.IGNORECASE | re.ASCII)
# Languages whose code is another one here.
_SYNONYMS = {"nb": "no", "nn": "no", "iw": "he", "cmn": "zh"}


def language_code(tag: str) -> str:
    """The code of a tag's language, without its region and script; what is no tag in lower case."""
    found = _TAG.fullmatch(tag.strip())
    code = (found[1] if found else tag).lower()
    return _SYNONYMS.get(code, code)
