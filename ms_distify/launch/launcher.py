"""Writes ``run_distribute.sh``, the shell script that starts a converted program on several cards.

The launcher is one file that needs nothing from this package when it runs. Its two halves are files of
their own here: ``run_distribute.sh.in`` reads the options and checks that the job can start, and ``job.py``,
which the launcher carries inside itself, runs the job.
"""

from __future__ import annotations

import re
import shlex
from importlib import resources

LAUNCHER_NAME = "run_distribute.sh"

# The line in the template's head that marks a launcher as ours; a user who edits the file deletes it.
_MARK = "# Written by ms-distify."
_HEAD_LINES = 5


def render(script: str, *, default_ranks: int = 8) -> str:
    """Return the text of the launcher for a training program.

    `script` is the program's file name, relative to the directory that the launcher will be in. Any character
    a file name can have is safe; bytes that are no text may be surrogate escapes, and then have to be written
    with the same error handler. `default_ranks` processes are started when the user does not say how many.
    ValueError is raised for what cannot be a file name or a number of processes.
    """
    if not script or script.endswith("/") or "\0" in script:
        raise ValueError(f"not a file name: {script!r}")
    if not 1 <= default_ranks <= 9999:
        raise ValueError(f"not a number of processes: {default_ranks}")
    values = {
        "@SCRIPT@": shlex.quote(script),
        "@DEFAULT_RANKS@": str(default_ranks),
        "@JOB@": _read("job.py"),
    }
    return re.sub("@[A-Z_]+@", lambda place: values[place.group()], _read("run_distribute.sh.in"))


def is_ours(text: str) -> bool:
    """Whether ms-distify wrote this launcher, and nobody has made it their own since (its head says how)."""
    return any(line.startswith(_MARK) for line in text.splitlines()[:_HEAD_LINES])


def _read(name: str) -> str:
    return (resources.files("ms_distify.launch") / name).read_text(encoding="utf-8")
