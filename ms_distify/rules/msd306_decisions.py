"""Whether gradients are applied is decided alike on every rank.

A condition on the loss of a rank's own rows lets one rank apply the gradients and another skip them: from then on weights
differ, and nothing says so. Decisions on the gradients themselves are alike once they are averaged, and step counters
are alike anyway.

Before (refused)::

    loss, grads = grad_fn(x, y)
    if loss < limit:
        optimizer(grads)
"""

from __future__ import annotations

from collections.abc import Iterator

from ..model import Decision
from . import REFUSED, Context, decide, rule

CODE = "MSD306"


@rule(CODE, "decisions that every rank takes alike")
def check(context: Context) -> Iterator[Decision]:
    """Refuse applications under a condition on values of one rank."""
    gradients = context.program.gradients
    for application in gradients.applications:
        for test, what in gradients.decides(application):
            line = application.script.line(application.call)
            message = (
                f"this decides from {what} whether the gradients of line {line} are applied, so ranks would part; "
                "decide on the gradients, or on a value reduced over the ranks"
            )
            yield decide(CODE, REFUSED, application.script, test, message)
