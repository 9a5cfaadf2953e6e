"""The folders of the operating system for a user's data and caches."""

import os
import sys
from pathlib import Path


def user_folder(mac: str, xdg: str, default: str) -> Path:
    """mac: below the user's Library; xdg: the variable that names it elsewhere; default: below the
    user's home where that is unset. Windows has one for all."""
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / mac / "nightingale"
    if sys.platform == "win32":
        local = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
        return local / "nightingale"
    named = Path(os.environ.get(xdg) or "")
    if not named.is_absolute():  # the XDG rule for unset and relative values
        named = home / default
    return named / "nightingale"
