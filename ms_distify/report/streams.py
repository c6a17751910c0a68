"""Standard output for data, standard error for people."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

from ..exits import Stop, reason


def coloured(stream: object) -> bool:
    """Whether a stream is a terminal that takes colours."""
    return bool(getattr(stream, "isatty", lambda: False)()) and not os.environ.get("NO_COLOR")


def tell(line: str) -> None:
    """Say something to the person; data goes to standard output, everything else here."""
    if sys.stderr is None:
        return
    encoding = sys.stderr.encoding or "utf-8"
    try:
        sys.stderr.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        sys.stderr.flush()
    except OSError:
        _drop(sys.stderr)


def emit(data: bytes) -> None:
    """Put data on standard output; a reader that has gone away (``| head``) is no error.

    Raises:
        Stop: it cannot be written.
    """
    if sys.stdout is None:
        raise Stop("standard output is closed")
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _drop(sys.stdout)
    except OSError as error:
        _drop(sys.stdout)
        raise Stop(f"standard output: {reason(error)}") from None


def _drop(stream: TextIO) -> None:
    """Send what is still to come on a stream nowhere, so that Python does not stumble over it at its end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
