"""What a verification says: lines on the terminal, JSON, a page."""

from __future__ import annotations

import json
from pathlib import Path

from ..exits import DIFFERENT, OK, USAGE, Stop, reason
from ..report.streams import emit, tell
from ..together import settings_for
from . import outcome as result
from .command import Wish, verify
from .outcome import Outcome

_CODES = {result.PROVED: OK, result.DIFFERENT: DIFFERENT, result.COULD_NOT_RUN: USAGE}


def verify_and_tell(wish: Wish, *, as_json: bool, page: Path | None) -> int:
    """Verify, tell what was found, and return the exit code.

    Raises:
        Stop: choices do not go together, there is nothing to run, or the page cannot be written.
    """
    if wish.only and wish.converted is not None:
        raise Stop("choose one of --only and --converted")
    if page is not None and not page.resolve().parent.is_dir():
        raise Stop(f"{page}: its folder does not exist")
    settings = settings_for(wish.script.resolve().parent, None)
    tell(f"verify runs {wish.script}, in copies of its folder; nothing is written into the folder itself")
    outcome = verify(wish, settings, lambda line: tell(f"  {line} ..."))
    if as_json:
        emit((json.dumps(outcome.as_json(), indent=2) + "\n").encode())
    else:
        emit("".join(f"{line}\n" for line in lines(outcome)).encode("utf-8", "replace"))
    if page is not None:
        from .page import render

        try:
            page.write_text(render(outcome), encoding="utf-8")
        except OSError as error:
            raise Stop(f"{page}: {reason(error)}") from None
        tell(f"wrote {page}")
    if outcome.logs:
        tell(f"what the processes printed and recorded is in {outcome.logs}")
    return _CODES[outcome.verdict]


def lines(outcome: Outcome) -> list[str]:
    """Return what is printed: what was changed for the comparison, a line for each check, the verdict."""
    said = [f"{outcome.program}: {outcome.ranks} ranks on {outcome.device}, {outcome.steps} steps"]
    if outcome.changes:
        said.append(f"  to compare: {'; '.join(outcome.changes)}")
    width = max(map(len, result.CHECKS))
    said += [f"  {check.status:<12}  {check.name:<{width}}  {check.message}" for check in outcome.checks]
    left = [check.name for check in outcome.checks if check.status == result.NOT_COMPARED]
    behind = f": {outcome.why}" if outcome.why else f", but not compared: {', '.join(left)}" if left else ""
    said.append(f"{outcome.verdict}{behind}")
    return said
