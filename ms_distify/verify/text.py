"""Text of a program on a page: whatever it holds, it is shown and never obeyed."""

from __future__ import annotations

import html
import re

# What is invisible, turns the direction of what follows (and so can make code look like other code) or cannot stand in
# a file at all: control characters but tab and newline, marks of direction, halves of surrogate pairs.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufffe\uffff]"
)


def visible(text: str) -> str:
    """Return text with its invisible characters written as their numbers."""
    return _HIDDEN.sub(lambda match: f"\u27e8U+{ord(match.group()):04X}\u27e9", text)


def quoted(text: str) -> str:
    """Return text as it stands in HTML, in an element or in a quoted attribute."""
    return html.escape(visible(text), quote=True)
