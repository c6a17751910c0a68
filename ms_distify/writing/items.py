"""Appending items to a bracketed list (arguments of a call, parameters of a function) in the style it has."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..reading.source import Source

_TOKEN = re.compile(
    r"#[^\r\n]*"
    r"|(?:[A-Za-z]{0,2})(?:'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\")"
    r"|(?:[A-Za-z]{0,2})(?:'(?:\\.|[^\\'\r\n])*'|\"(?:\\.|[^\\\"\r\n])*\")"
    r"|\\\r?\n|\s+|\w+|\*\*|.",
    re.DOTALL,
)


@dataclass(frozen=True)
class _Shape:
    """Where a bracketed list ends and how.

    Attributes:
        last: the offset behind its last token, comments left out; the opening bracket's end if it is empty.
        close: the offset of the closing bracket.
        comma: whether it ends in a comma.
        empty: whether it has no items.
        double_star: the offset of ``**`` of a last ``**name`` item, or None.
        last_start: the offset where its last item starts.
    """

    last: int
    close: int
    comma: bool
    empty: bool
    double_star: int | None
    last_start: int


def _shape(text: str, opening: int) -> _Shape:
    depth, last, comma, empty = 0, opening + 1, False, True
    double_star: int | None = None
    item_start: int | None = None
    last_start = opening + 1
    for match in _TOKEN.finditer(text, opening):
        token = match.group()
        if token[0] == "#" or token.isspace() or token.startswith("\\"):
            continue
        if depth == 1 and token in ")]}":
            return _Shape(last, match.start(), comma, empty, double_star, last_start)
        if token in "([{" and len(token) == 1:
            depth += 1
            if depth == 1:
                continue
        elif token in ")]}":
            depth -= 1
        last, empty = match.end(), False
        comma = token == "," and depth == 1
        if comma:
            item_start = None
        elif item_start is None:
            item_start = last_start = match.start()
            double_star = match.start() if token == "**" else None
    raise AssertionError("unbalanced brackets in text that was parsed")


def append_items(
    source: Source, opening: int, items: list[str], *, before_double_star: bool = False
) -> list[tuple[int, str]]:
    """Return the insertions (offset, text) that append items to the list whose bracket opens at ``opening``.

    A list that closes on a line of its own gets each item on its own line; trailing commas and comments stay.

    Args:
        source: the file.
        opening: the offset of the opening bracket.
        items: the texts to append.
        before_double_star: put them in front of a last ``**name``, as parameters need it.
    """
    text = source.text
    shape = _shape(text, opening)
    joined = ", ".join(items)
    if shape.empty:
        return [(opening + 1, joined)]
    if before_double_star and shape.double_star is not None:
        return [(shape.double_star, joined + ", ")]
    if source.line(shape.close) == source.line(shape.last):
        if shape.comma:
            return [(shape.last, f" {joined},")]
        return [(shape.last, f", {joined}")]
    # The bracket closes on a later line: one item a line, in the indentation of the last item's line.
    newline = source.newline
    starts_line = not text[source.line_start(shape.last_start) : shape.last_start].strip()
    if not starts_line:
        indent = source.indent(shape.last_start)
        if source.line(shape.last_start) == source.line(opening):
            indent += " " * 4
    else:
        indent = source.indent(shape.last_start)
    lines = [f"{indent}{item}" for item in items]
    insertions = [] if shape.comma else [(shape.last, ",")]
    body = f",{newline}".join(lines) + ("," if shape.comma else "") + newline
    return [*insertions, (source.line_end(shape.last), body)]
