"""Whether ranks train what one card at N times the batch trains."""

from __future__ import annotations

import math

from .compare import Distance, courses, loss_rounding, rounding_of
from .outcome import DIFFERS, NOT_COMPARED, NOTED, OK, Check
from .records import Process
from .runs import Runs

_NAME = "same mathematics"
# Rounding of two runs on rows in different orders is of one size; so many times that is something else.
_TIMES_ROUNDING = 10
_PARTS = {2: "half", 3: "third", 4: "quarter"}
MEAN, SUM, OTHER = "mean", "sum", "other"


def mathematics(runs: Runs, distances: list[Distance]) -> Check:
    """Ranks train what one card at N times the batch trains; or, where that is no measure, on equal rows what one card does."""
    check = _at_their_batch(runs, distances)
    return _on_equal_rows(runs, check) if check.status == NOT_COMPARED else check


def _at_their_batch(runs: Runs, distances: list[Distance]) -> Check:
    if len(distances) < 2:
        return Check(_NAME, NOT_COMPARED, runs.why_no_reference or "no step could be compared with one card")
    start = distances[0]
    if start.apart and start.largest > 1e-6:
        text = f"one card starts with other parameters: {start.where} differs by {start.largest:.3g}"
        return Check(_NAME, DIFFERS, text, start.largest)
    steps = len(distances) - 1
    last, grown = distances[-1], ""
    loose: dict[str, None] = {}
    what = f"one card at {len(runs.ranks)} times the batch"
    divided = runs.divided and not _undivided(runs)
    what += f" and a {_PARTS.get(len(runs.ranks), f'{len(runs.ranks)}th')} of the loss" if divided else ""
    for step, distance in enumerate(distances[1:], 1):
        if not math.isfinite(distance.largest):
            if step == 1:
                return Check(_NAME, NOT_COMPARED, "parameters are not finite after step 1, on one card too")
            steps, last = step - 1, distances[step - 1]
            break
        if not distance.equal and step > 1 and _is_rounding(runs, step, distance.length):
            steps, last = step - 1, distances[step - 1]
            grown = f" (then rounding has grown to {distance.largest:.3g}, in two runs of one card too)"
            break
        if not distance.equal:
            text = (
                f"differs from {what} from step {step} on: {distance.where} by "
                f"{distance.largest:.3g} ({distance.relative:.1%} of what training has changed)"
            )
            status, why = _excused(runs)
            return Check(_NAME, status, f"{why}{text}", distance.largest)
        check = _strays(runs, step, distance, what)
        if check is not None:
            return check
        loose.update(dict.fromkeys(stray.name for stray in distance.strays))
    if not last.tells:
        text = f"training has changed no parameter by more than {last.way:.3g}, which is little more than rounding"
        return Check(_NAME, NOT_COMPARED, f"{text}; give it more --steps", last.largest)
    text = f"largest difference to {what} over {steps} steps: {last.largest:.3g}{grown}"
    if last.halves and last.relative:
        text += f" ({last.relative:.1%} of what training has changed, in numbers of 16 bits)"
    if loose:
        more = f" and {len(loose) - 1} more" if len(loose) > 1 else ""
        text += f"; {next(iter(loose))}{more} cannot be judged, for rounding moves them as far"
    if not divided:
        return Check(_NAME, OK, text, last.largest)
    text += "; the loss adds up rows and ranks average their sums, so a step is 1/ranks of one card's at that batch"
    return Check(_NAME, NOTED, text, last.largest)


def _on_equal_rows(runs: Runs, check: Check) -> Check:
    """Compare one card with ranks that all read its rows: the mean of equal gradients is what one card has."""
    if runs.alike is None or runs.alike_one is None:
        return check
    steps = min(runs.alike_one.steps, runs.alike.steps)
    far = apart_on_equal_rows(runs)
    if far is not None:
        if runs.alike_again is not None and _first_apart(runs.alike_one, runs.alike_again) is not None:
            return check  # one card does not repeat itself either
        step, name, largest = far
        text = f"{name} differs from step {step} on by {largest:.3g} where all ranks read the rows that one card reads"
        return Check(_NAME, DIFFERS, text, largest)
    if not steps or _first_apart(runs.alike_one, runs.ranks[0]) is None:
        return check  # ranks with rows of their own come to the same, so nothing can be told
    largest = max(distance.largest for distance in courses(runs.alike_one, runs.alike))
    text = f"where all ranks read the rows of rank 0, they train as one card does on these: {largest:.3g} apart over {steps}"
    return Check(_NAME, NOTED, f"{text} steps; more rows on one card are no measure, for {check.message}", largest)


def apart_on_equal_rows(runs: Runs) -> tuple[int, str, float] | None:
    """Return from which step on ranks with equal rows part from one card, which parameter and how far; None where not."""
    if runs.alike is None or runs.alike_one is None:
        return None
    return _first_apart(runs.alike_one, runs.alike)


def _first_apart(one: Process, other: Process) -> tuple[int, str, float] | None:
    for step, distance in enumerate(courses(one, other)[1:], 1):
        if not distance.equal:
            return step, distance.where, distance.largest
        if distance.strays:
            return step, distance.strays[0].name, distance.strays[0].largest
    return None


def _undivided(runs: Runs) -> str:
    """Return the optimizer that had whole gradients, where it should have had a part of them; or nothing."""
    event = runs.reference.first("undivided") if runs.reference is not None else None
    return str(event["cls"]) if event is not None else ""


def _strays(runs: Runs, step: int, distance: Distance, what: str) -> Check | None:
    """Judge parameters that are far apart for their own way, though their part of all parameters' is small."""
    for stray in distance.strays:
        own = f" ({stray.relative:.1%} of its own way)" if math.isfinite(stray.relative) else ", and one card leaves it"
        text = f"{stray.name} differs from {what} from step {step} on by {stray.largest:.3g}{own}"
        if not _measured(runs):
            why = "how far rounding alone takes it could not be measured"
            return Check(_NAME, NOT_COMPARED, f"{text}; {why}", stray.largest)
        if not _is_rounding(runs, step, stray.length, stray.key):
            status, why = _excused(runs)
            return Check(_NAME, status, f"{why}{text}, where another order of rows changes less", stray.largest)
    return None


def _is_rounding(runs: Runs, step: int, length: float, key: str | None = None) -> bool:
    """Whether one card on the same rows in another order is as far from itself."""
    if runs.reference is None or runs.shuffled is None or not _measured(runs):
        return False
    return length <= _TIMES_ROUNDING * rounding_of(runs.reference, runs.shuffled, step, key)


def _measured(runs: Runs) -> bool:
    """Whether the rows in another order show rounding, and not that their order counts for the program."""
    if runs.reference is None or runs.shuffled is None:
        return False
    found = courses(runs.reference, runs.shuffled)
    return len(found) > 1 and found[1].equal


def to_measure(runs: Runs) -> bool:
    """Whether rounding has to be measured to tell what ranks and one card differ by."""
    if runs.reference is None:
        return False
    found = courses(runs.reference, runs.ranks[0])[1:]
    return bool(found) and found[0].equal and any(distance.strays or not distance.equal for distance in found)


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
    if len(distances) < 2 or all(distance.equal and not distance.strays for distance in distances[1:]):
        return ""
    found = batch_loss(runs.reference, runs.ranks)
    return found[0] if found is not None and found[0] != MEAN else ""


def same_loss(runs: Runs) -> bool:
    """Whether the original has the loss of rank 0 on rank 0's rows: it is the same program, then."""
    return runs.own_rows is not None and _first_losses(runs.own_rows, runs.ranks[0])[1]


def _first_losses(one: Process, other: Process) -> tuple[list[float], bool]:
    """Return the losses of two runs in step 1, as far as they were seen, and whether both were and are equal."""
    steps = one.first("step"), other.first("step")
    losses = [step["loss"] for step in steps if step is not None and step["loss"] is not None]
    return losses, len(losses) == 2 and math.isclose(*losses, rel_tol=loss_rounding(one), abs_tol=1e-6)


def _excused(runs: Runs) -> tuple[str, str]:
    """Return the status of a difference, and why one card at N times the batch is no measure, where losses tell."""
    found = batch_loss(runs.reference, runs.ranks) if runs.reference else None
    if found is None or found[0] == MEAN or runs.own_rows is None:
        return DIFFERS, ""
    if not same_loss(runs):
        losses, equal = _first_losses(runs.own_rows, runs.own_again) if runs.own_again else ([], True)
        if len(losses) == 2 and not equal:
            return NOT_COMPARED, (
                f"with equal parameters and rows the loss of one card is {losses[0]:.6g} in one run and {losses[1]:.6g} in "
                "another: it draws random numbers; "
            )
        return DIFFERS, "rank 0 has another loss in step 1 than the original has on the same rows; "
    kind, alone, mean = found
    if kind == SUM and _undivided(runs):
        why = f"the loss adds up rows and ranks average their sums, and {_undivided(runs)} cannot be given a part of a gradient"
        return NOT_COMPARED, f"{why}; "
    if kind == SUM:
        return DIFFERS, ""  # compared with a part of the gradients, and it differs from that
    return NOT_COMPARED, (
        f"with equal parameters and rows the loss of one card is {alone:.6g}, the mean of the ranks' {mean:.6g}: rows of "
        "a batch count for each other's loss, or it draws random numbers; "
    )
