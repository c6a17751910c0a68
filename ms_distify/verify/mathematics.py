"""Whether ranks train what one card at N times the batch trains."""

from __future__ import annotations

import math

from .compare import Distance, courses, loss_rounding
from .outcome import DIFFERS, NOT_COMPARED, NOTED, OK, Check
from .records import Process
from .runs import Runs

_NAME = "same mathematics"
_PARTS = {2: "half", 3: "third", 4: "quarter"}
MEAN, SUM, OTHER = "mean", "sum", "other"


def mathematics(runs: Runs, distances: list[Distance]) -> Check:
    """Ranks train what one card at N times the batch trains."""
    if len(distances) < 2:
        return Check(_NAME, NOT_COMPARED, runs.why_no_reference or "no step could be compared with one card")
    start = distances[0]
    if start.apart and start.largest > 1e-6:
        text = f"one card starts with other parameters: {start.where} differs by {start.largest:.3g}"
        return Check(_NAME, DIFFERS, text, start.largest)
    steps = len(distances) - 1
    last = distances[-1]
    what = f"one card at {len(runs.ranks)} times the batch"
    what += f" and a {_PARTS.get(len(runs.ranks), f'{len(runs.ranks)}th')} of the loss" if runs.divided else ""
    for step, distance in enumerate(distances[1:], 1):
        if not math.isfinite(distance.largest):
            if step == 1:
                return Check(_NAME, NOT_COMPARED, "parameters are not finite after step 1, on one card too")
            steps, last = step - 1, distances[step - 1]
            break
        if not distance.equal:
            text = (
                f"differs from {what} from step {step} on: {distance.where} by "
                f"{distance.largest:.3g} ({distance.relative:.1%} of what training has changed)"
            )
            status, why = _excused(runs)
            return Check(_NAME, status, f"{why}{text}", distance.largest)
    if not last.tells:
        text = f"training has changed no parameter by more than {last.way:.3g}, which is little more than rounding"
        return Check(_NAME, NOT_COMPARED, f"{text}; give it more --steps", last.largest)
    text = f"largest difference to {what} over {steps} steps: {last.largest:.3g}"
    if last.halves and last.relative:
        text += f" ({last.relative:.1%} of what training has changed, in numbers of 16 bits)"
    if not runs.divided:
        return Check(_NAME, OK, text, last.largest)
    text += "; the loss adds up rows and ranks average their sums, so a step is 1/ranks of one card's at that batch"
    return Check(_NAME, NOTED, text, last.largest)


def batch_loss(one: Process, ranks: list[Process]) -> tuple[str, float, float] | None:
    """Tell from the losses of step 1, where parameters are still equal, how a batch's loss comes from its rows.

    Returns:
        ``MEAN`` (of the rows), ``SUM`` or ``OTHER`` (rows count for each other, or random numbers are drawn), the loss
        of one card on the rows of all ranks, and the mean of the ranks' losses; None where no losses were seen.
    """
    steps = [process.first("step") for process in (one, *ranks)]
    losses = [step["loss"] for step in steps if step is not None and step["loss"] is not None]
    if len(losses) <= len(ranks) or not all(math.isfinite(loss) for loss in losses):
        return None
    alone, mean = losses[0], sum(losses[1:]) / len(ranks)
    part = loss_rounding(one)
    close = [math.isclose(alone, whole, rel_tol=part, abs_tol=1e-6) for whole in (mean, mean * len(ranks))]
    if close[0]:
        by_row = all(step is not None and step.get("by_row") for step in steps)
        return SUM if by_row else MEAN, alone, mean
    return SUM if close[1] else OTHER, alone, mean


def questioned(runs: Runs) -> str:
    """Return how rows make up the loss ("sum", "other"), where that may be why ranks part from one card; or nothing."""
    if runs.reference is None:
        return ""
    distances = courses(runs.reference, runs.ranks[0])
    if len(distances) < 2 or all(distance.equal for distance in distances[1:]):
        return ""
    found = batch_loss(runs.reference, runs.ranks)
    return found[0] if found is not None and found[0] != MEAN else ""


def same_loss(runs: Runs) -> bool:
    """Whether the original has the loss of rank 0 on rank 0's rows: it is the same program, then."""
    if runs.own_rows is None:
        return False
    steps = runs.own_rows.first("step"), runs.ranks[0].first("step")
    losses = [step["loss"] for step in steps if step is not None and step["loss"] is not None]
    return len(losses) == 2 and math.isclose(*losses, rel_tol=loss_rounding(runs.own_rows), abs_tol=1e-6)


def _excused(runs: Runs) -> tuple[str, str]:
    """Return the status of a difference, and why one card at N times the batch is no measure, where losses tell."""
    found = batch_loss(runs.reference, runs.ranks) if runs.reference else None
    if found is None or found[0] == MEAN or runs.own_rows is None:
        return DIFFERS, ""
    if not same_loss(runs):
        return DIFFERS, "rank 0 has another loss in step 1 than the original has on the same rows; "
    kind, alone, mean = found
    if kind == SUM:
        return DIFFERS, ""  # compared with a part of the gradients, and it differs from that
    return NOT_COMPARED, (
        f"with equal parameters and rows the loss of one card is {alone:.6g}, the mean of the ranks' {mean:.6g}: rows of "
        "a batch count for each other's loss, or it draws random numbers; "
    )
