"""Appending items to a bracketed list (arguments of a call, parameters of a function) in the style it has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..reading.source import Source

_TOKEN = re.compile(
    r"#[^\r\n]*"
    r"|(?P<formatted>(?:[fFtT][rR]?|[rR][fFtT])(?:'''|\"\"\"|'|\"))"
    r"|(?:[A-Za-z]{0,2})(?:'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\")"
    r"|(?:[A-Za-z]{0,2})(?:'(?:\\.|[^\\'])*'|\"(?:\\.|[^\\\"])*\")"
    r"|\\(?:\r\n|\r|\n)|\s+|\w+|\*\*|.",
    re.DOTALL,
)


@dataclass(frozen=True)
class _Shape:
    """Where a bracketed list ends and how.

    Attributes:
        items: the offset at which each item starts.
        last: the offset behind its last token, comments left out; the opening bracket's end if it is empty.
        close: the offset of the closing bracket.
        comma: whether it ends in a comma.
        double_star: whether its last item is ``**name``.
        comprehension: whether its only item is a generator expression without brackets of its own.
    """

    items: tuple[int, ...]
    last: int
    close: int
    comma: bool
    double_star: bool
    comprehension: bool


def _shape(text: str, opening: int) -> _Shape:
    last, comma, double_star, comprehension = opening + 1, False, False, False
    items: list[int] = []
    depth, expects_item = 1, True
    for start, token in _tokens(text, opening + 1):
        if token in (")", "]", "}"):
            depth -= 1
            if not depth:
                return _Shape(tuple(items), last, start, comma, double_star, comprehension)
        last = start + len(token)
        comma = depth == 1 and token == ","
        if depth == 1 and expects_item:
            items.append(start)
            double_star = token == "**"
        comprehension = comprehension or (depth == 1 and token == "for")
        expects_item = comma
        if token in ("(", "[", "{"):
            depth += 1
    raise AssertionError("unbalanced brackets in text that was parsed")


def _tokens(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield the tokens from an offset on, without white space and comments; a string is one token."""
    while start < len(text):
        match = _TOKEN.match(text, start)
        assert match is not None, "the last alternative takes any character"
        end = _formatted_end(text, start) if match["formatted"] else match.end()
        token = text[start:end]
        if token[0] not in "#\\" and not token.isspace():
            yield start, token
        start = end


_QUOTE = re.compile(r"([A-Za-z]{0,2})('''|\"\"\"|'|\")")


def _formatted_end(text: str, start: int) -> int:
    """Return the offset behind a string literal; replacement fields may hold strings in the same quotes."""
    match = _QUOTE.match(text, start)
    assert match is not None, "called at a string"
    prefix, quote = match.group(1).lower(), match.group(2)
    formatted = "f" in prefix or "t" in prefix
    at = match.end()
    while not text.startswith(quote, at):
        if formatted and "r" not in prefix and text.startswith("\\N{", at):
            at = text.index("}", at) + 1
        elif text[at] == "\\" and not (formatted and text[at + 1] in "{}"):
            at += 2
        elif formatted and text[at] == "{" and not text.startswith("{{", at):
            at = _field_end(text, at + 1)
        else:
            at += 2 if formatted and text.startswith("{{", at) else 1
    return at + len(quote)


def _field_end(text: str, at: int) -> int:
    """Return the offset behind the brace that closes a replacement field that opens before ``at``."""
    depth = 0
    while True:
        char = text[at]
        if _QUOTE.match(text, at) and not text[at - 1].isalnum():
            at = _formatted_end(text, at)
            continue
        if char == "#":
            while at < len(text) and text[at] not in "\r\n":
                at += 1
            continue
        if char in "([{":
            depth += 1
        elif char in ")]}":
            if not depth:
                return at + 1
            depth -= 1
        elif char == ":" and not depth:
            at += 1
            while text[at] != "}":  # a format specification: text with fields of its own
                at = _field_end(text, at + 1) if text[at] == "{" else at + 1
            return at + 1
        at += 1


def append_items(
    source: Source, opening: int, items: list[str], *, before_double_star: bool = False
) -> list[tuple[int, str]]:
    """Return the insertions (offset, text) that append items to the list whose bracket opens at ``opening``.

    A list that closes on a line of its own gets new lines: one an item where its own items have one each,
    else one for all. Trailing commas and comments stay.

    Args:
        source: the file.
        opening: the offset of the opening bracket.
        items: the texts to append.
        before_double_star: put them in front of a last ``**name``, as parameters need it.
    """
    text, newline = source.text, source.newline
    shape = _shape(text, opening)
    joined = ", ".join(items)
    if not shape.items:
        return [(opening + 1, joined)]
    if shape.comprehension and not shape.comma:
        return [(shape.items[0], "("), (shape.last, f"), {joined}")]
    if before_double_star and shape.double_star:
        at = shape.items[-1]
        between = f",{newline}{source.indent(at)}" if _starts_line(source, at) else ", "
        return [(at, "".join(item + between for item in items))]
    if source.line(shape.close) == source.line(shape.last):
        return [(shape.last, f" {joined}," if shape.comma else f", {joined}")]
    indent = _item_indent(source, opening, shape)
    alone = _starts_line(source, shape.items[-1])
    lines = [indent + item for item in items] if alone else [indent + joined]
    body = f",{newline}".join(lines) + ("," if shape.comma else "") + newline
    comma = [] if shape.comma else [(shape.last, ",")]
    return [*comma, (source.line_end(shape.last), body)]


def _starts_line(source: Source, offset: int) -> bool:
    return not source.text[source.line_start(offset) : offset].strip()


def _item_indent(source: Source, opening: int, shape: _Shape) -> str:
    """Return the indentation of the last item that starts a line, else one level more than the list's."""
    for start in reversed(shape.items):
        if _starts_line(source, start):
            return source.indent(start)
    indent = source.indent(opening)
    return indent + ("\t" if indent.endswith("\t") else "    ")
