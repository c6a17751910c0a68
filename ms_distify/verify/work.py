"""Working copies of a project, so that the runs of a verification write nothing into it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

# Larger files are linked, and no more than this is copied in all.
COPIED_FILE = 5_000_000
COPIED_IN_ALL = 200_000_000
# A folder without programs that holds more files than this is linked as a whole.
MANY_FILES = 200
_SKIPPED = {"__pycache__", "node_modules", ".git", ".hg", ".svn", ".mypy_cache", ".pytest_cache", ".ruff_cache"}


def project_root(script: Path, modules: list[Path]) -> Path:
    """Return the folder that holds a script and all local modules that it imports, resolved."""
    folders = [str(path.resolve().parent) for path in (script, *modules)]
    return Path(os.path.commonpath(folders))


def make_copy(root: Path, place: Path) -> None:
    """Copy a project into a new folder: small files as they are, large ones and folders of data as links.

    Raises:
        OSError: it cannot be read or written.
    """
    place.mkdir(parents=True)
    left = COPIED_IN_ALL
    pending = [(root, place)]
    while pending:
        source, target = pending.pop()
        for entry in sorted(os.scandir(source), key=lambda found: found.name):
            if entry.name in _SKIPPED:
                continue
            there = target / entry.name
            if entry.is_dir(follow_symlinks=False):
                if (Path(entry.path) / "pyvenv.cfg").exists():
                    continue
                if _is_data(Path(entry.path)):
                    there.symlink_to(os.path.realpath(entry.path))
                else:
                    there.mkdir()
                    pending.append((Path(entry.path), there))
            elif entry.is_symlink():
                there.symlink_to(os.path.realpath(entry.path))
            elif entry.is_file():
                size = entry.stat().st_size
                if size <= COPIED_FILE and size <= left:
                    left -= size
                    shutil.copy2(entry.path, there)
                else:
                    there.symlink_to(os.path.realpath(entry.path))


def _is_data(folder: Path) -> bool:
    """Whether a folder holds many files and nothing that looks like part of a program."""
    count = 0
    for _, _, files in os.walk(folder):
        if any(os.path.splitext(name)[1] == ".py" for name in files):
            return False
        count += len(files)
        if count > 20 * MANY_FILES:
            break
    return count > MANY_FILES
