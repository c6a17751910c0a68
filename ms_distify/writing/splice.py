"""Text splices: the only thing that ever changes a file's text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Splice:
    """Replace ``text[start:end]``; at one offset, splices are applied in rising order."""

    start: int
    end: int
    text: str
    order: int = 0


def apply(text: str, splices: Sequence[Splice]) -> str:
    """Return ``text`` with all splices carried out.

    Raises:
        AssertionError: two splices overlap (a bug of ours: edits must not meet).
    """
    parts: list[str] = []
    position = 0
    for splice in sorted(splices, key=lambda s: (s.start, s.end, s.order)):
        if splice.start < position:
            raise AssertionError(f"edits overlap at offset {splice.start}")
        parts += [text[position : splice.start], splice.text]
        position = splice.end
    parts.append(text[position:])
    return "".join(parts)
