"""Why a run did not come far enough, and what to give it."""

from __future__ import annotations

from .processes import Ended
from .records import Process


class CouldNotRun(Exception):
    """A run that everything needs did not come far enough; the message says why and what to do."""


def must_have_trained(process: Process, ended: Ended, what: str) -> None:
    """Give up where a run took no step.

    Raises:
        CouldNotRun: it took none.
    """
    if process.steps == 0:
        raise CouldNotRun(why_it_ended(ended, what, process))


def _no_step(process: Process) -> str:
    if not process.first("optimizer"):
        return "no optimizer of MindSpore was built"
    reads = sum(1 for _ in process.all("read"))
    if not reads:
        return "no batch was read from a MindSpore dataset"
    return f"{reads} batches were read, and no parameter of an optimizer had changed"


def why_it_ended(ended: Ended, what: str, process: Process | None) -> str:
    """Say why a run took no step, in one line, and what to give it."""
    what = f"{what}: " if what else ""
    forbidden = process.first("forbidden") if process else None
    if forbidden:
        return f"{what}it writes {forbidden['path']}, which was there before; let it write into its own folder"
    error = process.first("error") if process else None
    if error:
        place = f" ({error['at'].rpartition('/')[2]})" if error["at"] else ""
        return f"{what}{error['type']}: {error['text']}{place}"
    if ended.status is None:
        return f"{what}not done after {ended.seconds:.0f} s; --timeout gives it more, --steps less to do"
    if process is not None and process.events and ended.status == 0:
        return f"{what}it ended without a training step that could be seen: {_no_step(process)}"
    return f"{what}ended with {ended.status}: {ended.last_line()[:300]}"
