"""Records the error that ended the program."""

from __future__ import annotations

import sys
import traceback
from types import TracebackType

from .log import Log, is_of_program


def watch_errors(log: Log) -> None:
    """Record an error that nobody catches, and where in the program it came from."""
    original = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(trace)]
        own = [place for place in places if is_of_program(place[0])]
        place = f"{own[-1][0]}:{own[-1][1]}" if own else None
        log.write("error", type=kind.__name__, text=first_line(str(error))[:500], at=place)
        original(kind, error, trace)

    sys.excepthook = excepthook


def first_line(text: str) -> str:
    """Return the line of an error's text that says what is wrong.

    That is the first one; but where MindSpore's data pipeline fails it only says that something did, in which case the
    cause stands in a section below: the last line of the stack of the user's own function, or a line with ``[ERROR]``
    (measured with MindSpore 2.10).
    """
    lines = [line.strip() for line in text.strip().splitlines()]
    stack = _section(lines, "- Python Call Stack:")
    if stack:
        return stack[-1]
    for line in _section(lines, "- Dataset Pipeline Error Message:"):
        if line.startswith("[ERROR]"):
            return line[len("[ERROR]") :].strip()
    return lines[0] if lines else ""


def _section(lines: list[str], title: str) -> list[str]:
    """Return the lines between a title, below which a rule is drawn, and the next rule."""
    if title not in lines:
        return []
    found: list[str] = []
    for line in lines[lines.index(title) + 2 :]:
        if line and not line.strip("-"):
            break
        if line:
            found.append(line)
    return found
