"""Findings as lines on a terminal, and unified diffs."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from ..model import CHANGED, KEPT, NOTED, REFUSED, Finding

_COLOURS = {CHANGED: "32", KEPT: "2", NOTED: "33", REFUSED: "31"}


def finding_lines(findings: Iterable[Finding], *, colour: bool = False, written: bool = True) -> Iterator[str]:
    """Yield one line a finding, under a heading for each file: status, code, line, reason.

    Where nothing is written, "changed" reads "would": what would be changed.
    """
    current = None
    for finding in findings:
        if finding.path != current:
            current = finding.path
            yield finding.path
        yield finding_line(finding, colour=colour, written=written)


def finding_line(finding: Finding, *, colour: bool = False, written: bool = True) -> str:
    """Return the line of a finding, without its heading."""
    word = finding.status if written or finding.status != CHANGED else "would"
    status = f"{word:<8}"
    if colour:
        status = f"\x1b[{_COLOURS[finding.status]}m{status}\x1b[0m"
    return f"  {status} {finding.code}  {finding.path}:{finding.line}  {finding.message}"


def summary(findings: Iterable[Finding], *, written: bool = True) -> str:
    """Return the number of findings of each status: "5 changed, 2 kept", or "5 would change" if nothing is written."""
    counts = Counter(finding.status for finding in findings)
    words = {CHANGED: CHANGED if written else "would change"}
    order = (CHANGED, KEPT, NOTED, REFUSED)
    return ", ".join(f"{counts[status]} {words.get(status, status)}" for status in order if counts[status])


def unified_diff(before: bytes, after: bytes, path: str, *, colour: bool = False) -> bytes:
    """Return a diff that ``git apply`` and ``patch`` take, whatever the encoding and the line ends.

    Args:
        before: the file as it is.
        after: the file as it would be.
        path: the file's name, for the ``a/`` and ``b/`` headers: relative to the present folder if it lies
            in it, else to the root.
        colour: add terminal colours.
    """
    import difflib  # not cheap, and most runs show no diff

    old, new = _lines(before), _lines(after)
    name = _diff_name(path)
    tab = "\t" if " " in name else ""  # as git does, so that patch sees where the name ends
    parts: list[str] = []
    for line in difflib.unified_diff(old, new, _quoted(f"a/{name}") + tab, _quoted(f"b/{name}") + tab):
        text = line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
        parts.append(_coloured(text) if colour else text)
    return "".join(parts).encode("utf-8", "surrogateescape")


def _lines(content: bytes) -> list[str]:
    """Split where git and patch do: at line feeds only, so that carriage returns stay within their lines."""
    *lines, last = content.decode("utf-8", "surrogateescape").split("\n")
    return [line + "\n" for line in lines] + ([last] if last else [])


def _diff_name(path: str) -> str:
    if path == "<stdin>":
        return "stdin"
    absolute = os.path.abspath(path)
    relative = os.path.relpath(absolute)
    name = absolute.lstrip(os.sep) if relative.startswith(os.pardir) else relative
    return name.replace(os.sep, "/")


def _quoted(name: str) -> str:
    """Quote a name as git does, where it holds what would break its line."""
    if not re.search(r'[\x00-\x1f\x7f"\\]', name):
        return name
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(c) or (f"\\{ord(c):03o}" if c < " " or c == "\x7f" else c) for c in name) + '"'


def _coloured(line: str) -> str:
    if line.startswith(("+++", "---")):
        code = "1"
    elif line.startswith("@@"):
        code = "36"
    elif line.startswith("+"):
        code = "32"
    elif line.startswith("-"):
        code = "31"
    else:
        return line
    body = line.rstrip("\n")
    return f"\x1b[{code}m{body}\x1b[0m\n"
