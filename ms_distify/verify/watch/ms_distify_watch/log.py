"""The file that a watched process writes what was seen into."""

from __future__ import annotations

import json
import os
import sys
import threading
from types import FrameType
from typing import Any, TextIO

_WATCH = os.path.dirname(os.path.abspath(__file__))


class Log:
    """Events of one process, one JSON object a line, written at once.

    Attributes:
        folder: where the run is recorded.
        name: "one" or the rank.
        owned: whether this process is the program, and not one that the program started.
    """

    def __init__(self, folder: str, name: str) -> None:
        self.folder, self.name = folder, name
        self.owned = False
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._file: TextIO | None = None
        self._early: list[str] = []

    def open(self) -> None:
        """Begin the file, unless another process of this name has."""
        try:
            self._file = open(self.path(".jsonl"), "x", encoding="utf-8")  # noqa: SIM115
        except FileExistsError:
            self._pid = 0  # a process that the program started
            return
        self.owned = True
        self.write("start", arguments=sys.argv)
        for line in self._early:
            self._file.write(line)
        self._file.flush()

    def path(self, ending: str) -> str:
        """Return the path of a file of this process in the folder of the run."""
        return os.path.join(self.folder, self.name + ending)

    def write(self, event: str, **what: Any) -> None:
        """Write one event; one that comes before MindSpore is kept until then.

        Of processes that the program started, only the files that they write count.
        """
        line = json.dumps({"e": event, **what}) + "\n"
        if os.getpid() != self._pid:
            if event == "write":
                with open(self.path(f".{os.getpid()}.writes"), "a", encoding="utf-8") as file:
                    file.write(line)
            return
        with self._lock:
            if self._file is not None:
                self._file.write(line)
                self._file.flush()
            elif len(self._early) < 10_000:
                self._early.append(line)


def is_of_program(file: str) -> bool:
    """Whether a file of source is the program's, and not of a library, of Python or of this package."""
    installed = ("site-packages", "dist-packages", os.path.dirname(os.__file__) + os.sep)
    return not file.startswith((_WATCH, "<")) and not any(part in file for part in installed)


def caller() -> str | None:
    """Return "file:line" of the program's code that runs now; None while a library is being imported."""
    library = os.path.dirname(getattr(sys.modules.get("mindspore"), "__file__", None) or "/nowhere/x")
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith("<frozen importlib"):
            return None
        if not name.startswith((library, _WATCH, "<")):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return None
