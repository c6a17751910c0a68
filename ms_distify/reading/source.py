"""One file as bytes and as text: encoding, byte-order mark, line ends, and the way back to bytes."""

from __future__ import annotations

import bisect
import codecs
import re
import tokenize
from dataclasses import dataclass, field

# What Python itself takes for a line end: never form feeds or the Unicode separators of str.splitlines.
LINE_END = re.compile(r"\r\n|\r|\n")

# CPython's own tokenizer stops at 200 open brackets, so no program that runs is refused by this limit,
# while libcst's native parser kills the process somewhere above 1,000 (FACTS 6).
MAX_NESTING = 200


class SourceError(Exception):
    """A file that cannot be read as a Python program.

    Attributes:
        line: 1-based line of the trouble, or None where it concerns the whole file.
        reason: one line for the user, with the way out.
    """

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


@dataclass(frozen=True)
class Source:
    """The text of one file and what is needed to write it back to the same bytes.

    Attributes:
        path: how the file is called in messages.
        raw: the bytes as they were read.
        text: the decoded text without a byte-order mark; line ends untouched.
        encoding: the codec the file declares (PEP 263), else UTF-8.
        bom: the byte-order mark, or nothing.
        newline: the line end most used in the file, for inserted lines.
        starts: the offset of each line's first character.
    """

    path: str
    raw: bytes
    text: str
    encoding: str
    bom: bytes
    newline: str
    starts: list[int] = field(repr=False, default_factory=list)

    def encode(self, text: str) -> bytes:
        """Return ``text`` as bytes in the encoding of this file, byte-order mark included."""
        return self.bom + text.encode(self.encoding)

    def line(self, offset: int) -> int:
        """Return the 1-based line of a character offset."""
        return bisect.bisect_right(self.starts, offset)

    def column(self, offset: int) -> int:
        """Return the 1-based column of a character offset."""
        return offset - self.starts[self.line(offset) - 1] + 1

    def line_start(self, offset: int) -> int:
        """Return the offset at which the line of ``offset`` starts."""
        return self.starts[self.line(offset) - 1]

    def line_end(self, offset: int) -> int:
        """Return the offset just behind the line of ``offset``, its line end included."""
        number = self.line(offset)
        return self.starts[number] if number < len(self.starts) else len(self.text)

    def line_text(self, number: int) -> str:
        """Return the text of a 1-based line, without its line end."""
        start = self.starts[number - 1]
        return self.text[start : self.line_end(start)].rstrip("\r\n")

    def indent(self, offset: int) -> str:
        """Return the white space at the start of the line of ``offset``."""
        start = self.line_start(offset)
        match = re.compile(r"[ \t\f]*").match(self.text, start)
        return match.group() if match else ""


def decode(raw: bytes, path: str) -> Source:
    """Decode the bytes of a Python file as Python itself would.

    Args:
        raw: the whole file.
        path: the name used in messages.

    Returns:
        The source; ``source.encode(source.text) == raw`` holds.

    Raises:
        SourceError: not text, an unknown or wrong encoding, or an encoding that does not round-trip.
    """
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError("it is UTF-16, which Python does not read; save it as UTF-8")
    if b"\0" in raw:
        line = len(LINE_END.findall(raw[: raw.index(b"\0")].decode("latin-1"))) + 1
        raise SourceError("not a Python text file: it contains NUL bytes", line)
    encoding = _declared(raw)
    bom = codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""
    body = raw[len(bom) :]
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        line = len(LINE_END.findall(body[: error.start].decode("latin-1"))) + 1
        raise SourceError(
            f"not valid {encoding}; declare the file's encoding in its first line (PEP 263)", line=line
        ) from None
    except (UnicodeError, LookupError) as error:  # codecs that are not for text, or not for whole files
        raise SourceError(f"its encoding {encoding} cannot be read: {error}", line=1) from None
    if not _round_trips(text, body, encoding):
        raise SourceError(f"its encoding {encoding} cannot be written back byte for byte; save it as UTF-8")
    ends = LINE_END.findall(text)
    newline = max(("\n", "\r\n", "\r"), key=ends.count) if ends else "\n"
    starts = [0, *(match.end() for match in LINE_END.finditer(text))]
    return Source(path, raw, text, encoding, bom, newline, starts)


def _declared(raw: bytes) -> str:
    """Return the codec a file declares, else UTF-8."""
    lines = raw.splitlines(keepends=True)[:2] if len(raw) < 1000 else raw[:1000].splitlines(keepends=True)[:2]
    given = iter(lines)
    try:
        encoding, _ = tokenize.detect_encoding(lambda: next(given, b""))
    except (SyntaxError, UnicodeError) as error:
        for number, line in enumerate(lines, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                reason = "not valid utf-8; declare the file's encoding in its first line (PEP 263)"
                raise SourceError(reason, number) from None
        cookies = [number for number, line in enumerate(lines, 1) if b"coding" in line]
        raise SourceError(f"its encoding cannot be told: {error}", line=cookies[0] if cookies else 1) from None
    return "utf-8" if encoding == "utf-8-sig" else encoding


def _round_trips(text: str, body: bytes, encoding: str) -> bool:
    try:
        return text.encode(encoding) == body
    except UnicodeError:
        return False


_TOKENS = re.compile(
    r"#[^\r\n]*"
    r"|(?:'''(?:\\.|[^\\])*?(?:'''|\Z))|(?:\"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z))"
    r"|'(?:\\.|[^\\'\r\n])*'?|\"(?:\\.|[^\\\"\r\n])*\"?"
    r"|[()\[\]{}]",
    re.DOTALL,
)


def deepest_brackets(text: str) -> tuple[int, int]:
    """Return how deep brackets nest in Python text, and the offset where they are deepest.

    Brackets in comments and strings do not count. Cheap enough to run before the parser sees the text.
    """
    depth = deepest = where = 0
    for match in _TOKENS.finditer(text):
        token = match.group()
        if token in "([{":
            depth += 1
            if depth > deepest:
                deepest, where = depth, match.start()
        elif token in ")]}":
            depth = max(0, depth - 1)
    return deepest, where
