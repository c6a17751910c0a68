"""There is one place for the start-up, on the way to every training.

Rank and size must be known to all trainings of a program. Where the context is set in a loop, or in several
branches that each train, the start-up goes in front of all of them and chooses the device itself (see MSD105). Where
each of them chooses another device, no single place exists; the program is refused until the device is chosen once.

Before (refused)::

    for target in targets:
        ms.set_context(device_target=target)
        train()
"""

from __future__ import annotations

from collections.abc import Iterator

from ..model import Decision
from . import REFUSED, Context, decide, rule

CODE = "MSD107"


@rule(CODE, "one place for the start-up")
def check(context: Context) -> Iterator[Decision]:
    """Report why the start-up has no place."""
    for problem in context.startup.problems:
        if problem.code == CODE:
            yield decide(CODE, REFUSED, problem.script, problem.node, problem.message)
