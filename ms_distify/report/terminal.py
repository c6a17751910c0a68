"""Findings as lines on a terminal, and unified diffs."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator

from ..model import CHANGED, KEPT, NOTED, REFUSED, Finding

_COLOURS = {CHANGED: "32", KEPT: "2", NOTED: "33", REFUSED: "31"}


def finding_lines(findings: Iterable[Finding], *, colour: bool = False) -> Iterator[str]:
    """Yield one line a finding, under a heading for each file: status, code, line, reason."""
    current = None
    for finding in findings:
        if finding.path != current:
            current = finding.path
            yield finding.path
        status = f"{finding.status:<8}"
        if colour:
            status = f"\x1b[{_COLOURS[finding.status]}m{status}\x1b[0m"
        yield f"  {status} {finding.code}  {finding.path}:{finding.line}  {finding.message}"


def summary(findings: Iterable[Finding]) -> str:
    """Return the number of findings of each status: "5 changed, 2 kept"."""
    counts = Counter(finding.status for finding in findings)
    return ", ".join(f"{counts[status]} {status}" for status in (CHANGED, KEPT, NOTED, REFUSED) if counts[status])


def unified_diff(before: str, after: str, path: str, *, colour: bool = False) -> str:
    """Return a diff that ``git apply`` and ``patch`` take, line ends and a missing last one included.

    Args:
        before: the text as it is.
        after: the text as it would be.
        path: the file's name; made relative for the ``a/`` and ``b/`` headers.
        colour: add terminal colours.
    """
    name = path.lstrip("/")
    old, new = _lines(before), _lines(after)
    parts: list[str] = []
    for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"):
        text = line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
        parts.append(_coloured(text) if colour else text)
    return "".join(parts)


def _lines(text: str) -> list[str]:
    """Split where git and patch do: at line feeds only, so that carriage returns stay within their lines."""
    return [line + "\n" for line in text.split("\n")[:-1]] + ([last] if (last := text.split("\n")[-1]) else [])


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
