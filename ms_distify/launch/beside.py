"""The launcher beside an output: which file it is, and what it remembers of the output.

A converted program carries no mark of ours (it is the user's program). So the launcher remembers the
program's name
and digest, and with them whether a file at the output's place is still what ms-distify wrote there.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from .launcher import LAUNCHER_NAME, is_ours, render

_RECORD = re.compile(r"^# For (\"(?:[^\"\\]|\\.)*\"), sha256 ([0-9a-f]{64})$", re.MULTILINE)


def digest(content: bytes) -> str:
    """Return the hexadecimal SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def recorded(text: str) -> tuple[str, str] | None:
    """Return the program's file name and digest that a launcher of ours remembers; None if it has none."""
    match = _RECORD.search(text) if is_ours(text) else None
    return (json.loads(match.group(1)), match.group(2)) if match else None


def render_for(output: Path, content: bytes, *, default_ranks: int) -> str:
    """Return the text of the launcher for an output, with its record."""
    head, mark, rest = render(output.name, default_ranks=default_ranks).split("\n", 2)
    record = f"# For {json.dumps(output.name)}, sha256 {digest(content)}"
    return "\n".join([head, mark, record, rest])


def choose(output: Path) -> Path:
    """Return an output's launcher, by the launchers that lie in its folder."""
    present = {}
    for path in output.parent.glob("run_distribute*.sh"):
        if path.is_file():
            known = recorded(path.read_text(encoding="utf-8", errors="replace"))
            present[path.name] = known[0] if known is not None else None
    return output.parent / pick(output.name, present)


def pick(program: str, present: Mapping[str, str | None], *, several: bool = False) -> str:
    """Return the name of a program's launcher; the one place that decides it.

    A launcher that starts the program already is used again. ``run_distribute.sh`` is for a folder with one program;
    where others have launchers, each has one by its name.

    Args:
        program: the program's file name.
        present: the launchers of its folder, with the program that each starts (None: not known, or not ours).
        several: other programs of the folder get launchers, or ``run_distribute.sh`` is not to be had.
    """
    own = f"run_distribute_{os.path.splitext(program)[0]}.sh"
    if present.get(own) == program:
        return own
    if present.get(LAUNCHER_NAME) == program and not several:
        return LAUNCHER_NAME
    others = any(started not in (None, program) for started in present.values())
    return own if several or others else LAUNCHER_NAME
