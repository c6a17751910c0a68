"""The launcher beside an output: which file it is, and what it remembers of the output.

A converted program carries no mark of ours (it is the user's program). So the launcher remembers the
program's name
and digest, and with them whether a file at the output's place is still what ms-distify wrote there.
"""

from __future__ import annotations

import hashlib
import json
import re
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
    """Return an output's launcher: ``run_distribute.sh``, unless that already starts another program."""
    launcher = output.parent / LAUNCHER_NAME
    if launcher.is_file():
        known = recorded(launcher.read_text(encoding="utf-8", errors="replace"))
        if known is not None and known[0] != output.name:
            return output.parent / f"run_distribute_{output.stem}.sh"
    return launcher
