"""Exit codes, and how a run ends with one."""

from __future__ import annotations

OK, DIFFERENT, USAGE, REFUSAL, BUG, INTERRUPTED = 0, 1, 2, 3, 4, 130


class Stop(Exception):
    """The run ends with a message and an exit code."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code


def reason(error: Exception) -> str:
    """Return what an error says, without the numbers of the system."""
    return getattr(error, "strerror", None) or str(error)
