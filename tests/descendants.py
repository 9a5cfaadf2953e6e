"""Processes that a process started, itself or by others."""

from __future__ import annotations

import subprocess


def descendants(ancestor: int, title: str) -> list[int]:
    """Those whose title begins so."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True)
    parents, found = {}, []
    for line in listed.stdout.splitlines()[1:]:
        pid, parent, args = line.split(maxsplit=2)
        parents[int(pid)] = int(parent)
        if args.startswith(title):
            found.append(int(pid))
    return [pid for pid in found if ancestor in _ancestors(pid, parents)]


def _ancestors(pid: int, parents: dict[int, int]) -> list[int]:
    ancestors = []
    while (pid := parents.get(pid, 0)) != 0:
        ancestors.append(pid)
    return ancestors
