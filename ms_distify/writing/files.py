"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Target:
    """A file to write.

    Attributes:
        path: where; a symbolic link is followed, so that the link stays.
        content: all of it.
        mode: the permission bits, or None for those the present file has (or the default of a new one).
    """

    path: Path
    content: bytes
    mode: int | None = None


def write_all(targets: list[Target]) -> None:
    """Write several files so that either all are written or none is changed.

    All contents are put beside their targets first; only then are they moved into place.

    Raises:
        OSError: one cannot be written; nothing has been changed.
    """
    with contextlib.ExitStack() as stack:
        ready = [(stack.enter_context(_beside(target)), target.path.resolve()) for target in targets]
        for temporary, final in ready:
            os.replace(temporary, final)


@contextlib.contextmanager
def _beside(target: Target) -> Iterator[str]:
    """Write a target's content into a temporary file in its folder; removed unless it was moved away."""
    final = target.path.resolve()
    if final.is_dir():
        raise IsADirectoryError(21, "it is a directory", str(target.path))
    mode = target.mode
    with contextlib.suppress(FileNotFoundError):
        status = final.stat()
        mode = stat.S_IMODE(status.st_mode) if mode is None else mode
        if not os.access(final, os.W_OK):
            raise PermissionError(13, "it may not be written", str(target.path))
    handle, temporary = tempfile.mkstemp(prefix=f".{final.name}.", suffix=".tmp", dir=final.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(target.content)
        os.chmod(temporary, mode if mode is not None else 0o666 & ~_umask())
        yield temporary
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
