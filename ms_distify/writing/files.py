"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PREFIX = ".ms-distify-"


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

    All contents are put beside their targets first; only then are they moved into place, and moved back if
    one of them cannot be.

    Raises:
        OSError: one cannot be written, its name is in ``filename``; nothing has been changed.
    """
    with contextlib.ExitStack() as stack:
        ready = [(target, *stack.enter_context(_beside(target))) for target in targets]
        present = stack.enter_context(contextlib.ExitStack())
        undo = stack.enter_context(contextlib.ExitStack())
        for target, temporary, final in ready:
            with _named(target):
                kept = present.enter_context(_kept(final))
                os.replace(temporary, final)
            undo.callback(_put_back, kept, final)
        undo.pop_all()


@contextlib.contextmanager
def _beside(target: Target) -> Iterator[tuple[str, Path]]:
    """Write a target's content into a temporary file in its folder; removed unless it was moved away."""
    with _named(target):
        final = target.path.resolve()
        if final.is_dir():
            raise IsADirectoryError(21, "it is a directory", str(target.path))
        handle, temporary = tempfile.mkstemp(prefix=_PREFIX, suffix=".tmp", dir=final.parent)
    try:
        with _named(target):
            with os.fdopen(handle, "wb") as file:
                file.write(target.content)
            os.chmod(temporary, _mode(target, final, temporary))
        yield temporary, final
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _mode(target: Target, final: Path, temporary: str) -> int:
    """Return the permission bits a target gets; the owner of a present file stays its owner where we may."""
    try:
        status = final.stat()
    except FileNotFoundError:
        return target.mode if target.mode is not None else 0o666 & ~_umask()
    if not os.access(final, os.W_OK):
        raise PermissionError(13, "it may not be written", str(target.path))
    with contextlib.suppress(OSError, AttributeError):
        os.chown(temporary, status.st_uid, status.st_gid)
    return stat.S_IMODE(status.st_mode) if target.mode is None else target.mode


@contextlib.contextmanager
def _kept(final: Path) -> Iterator[str | None]:
    """Keep the present file under a second name until all are written; None if there is no file."""
    if not final.exists():
        yield None
        return
    handle, kept = tempfile.mkstemp(prefix=_PREFIX, suffix=".old", dir=final.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(final.read_bytes())
        status = final.stat()
        os.chmod(kept, stat.S_IMODE(status.st_mode))
        yield kept
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(kept)


def _put_back(kept: str | None, final: Path) -> None:
    if kept is None:
        final.unlink()
    else:
        os.replace(kept, final)


@contextlib.contextmanager
def _named(target: Target) -> Iterator[None]:
    """Let errors name the target, not its temporary file."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(target.path), None
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
