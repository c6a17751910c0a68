"""Distances between the parameters of processes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .outcome import DIFFERS, NOT_COMPARED, OK, Check
from .records import Process

if TYPE_CHECKING:
    import numpy as np

    Snapshot = dict[str, np.ndarray[Any, Any]]

# Sums of another order differ in the last digits. A difference of any parameter below the first bound is that; and so is
# one whose length, over all parameters, is below the second part of the way that training went so far.
ROUNDING = 1e-5
ROUNDING_OF_WAY = 1e-3
ROUNDING_OF_LOSS = 1e-4


@dataclass(frozen=True)
class Distance:
    """How far parameters are apart.

    Attributes:
        largest: the largest difference of any element that was kept.
        where: the parameter that has it.
        apart: whether anything differs at all, by checksums of all elements.
        relative: length of the difference over the length of the way from the start; 0 where there is no start.
        count: how many parameters there are.
    """

    largest: float
    where: str
    apart: bool
    relative: float
    count: int

    @property
    def equal(self) -> bool:
        """Whether the difference is one of rounding."""
        return self.largest <= ROUNDING or self.relative <= ROUNDING_OF_WAY


def distance(first: Snapshot, second: Snapshot, start: Snapshot | None, names: list[str]) -> Distance:
    """Return the distance of two snapshots."""
    import numpy as np

    keys = sorted(key for key in first if key != "checksums" and key in second)
    largest, where, square, way = 0.0, "", 0.0, 0.0
    for key in keys:
        if first[key].shape != second[key].shape:
            return Distance(math.inf, _name(names, key), True, math.inf, len(keys))
        one, other = (array.astype(np.float64) for array in (first[key], second[key]))
        if not np.isfinite(one).all() and not np.isfinite(other).all():
            return Distance(math.inf, _name(names, key), True, math.inf, len(keys))
        apart = np.nan_to_num(np.abs(one - other), nan=np.inf)
        here = float(apart.max()) if apart.size else 0.0
        if here > largest:
            largest, where = here, _name(names, key)
        if start is not None and key in start:
            square += float((apart**2).sum())
            way += float(((one - start[key]) ** 2).sum())
    sums = first["checksums"], second["checksums"]
    same = sums[0].shape == sums[1].shape and bool((sums[0] == sums[1]).all())
    if same:
        largest, where = 0.0, ""
    elif not where and sums[0].shape == sums[1].shape:
        where = _name(names, keys[int(np.flatnonzero(sums[0] != sums[1])[0])])
    relative = math.sqrt(square / way) if way else 0.0 if not square else math.inf
    return Distance(largest, where, not same, relative, len(keys))


def _name(names: list[str], key: str) -> str:
    number = int(key[1:])
    return names[number] if number < len(names) else f"parameter {number}"


def equal_ranks(ranks: list[Process]) -> tuple[list[float], Check]:
    """Compare ranks with rank 0 after every step: the largest differences, and the check."""
    name = "equal course"
    steps = min(rank.steps for rank in ranks)
    between: list[float] = []
    wrong: Check | None = None
    for step in range(steps + 1):
        first = ranks[0].snapshot(step)
        largest = 0.0
        for rank in ranks[1:]:
            other = rank.snapshot(step)
            if first is None or other is None:
                continue
            apart = distance(first, other, None, ranks[0].parameters())
            if apart.apart and step and wrong is None:
                text = f"ranks 0 and {rank.name} part in step {step}: {apart.where} differs by {apart.largest:.3g}"
                wrong = Check(name, DIFFERS, text, apart.largest)
            largest = max(largest, apart.largest)
        between.append(largest)
    if wrong is not None:
        return between, wrong
    if not steps:
        return between, Check(name, NOT_COMPARED, "no training step was seen")
    return between, Check(name, OK, f"largest difference between ranks over {steps} steps: 0", 0.0)


def batch_loss(one: Process, ranks: list[Process]) -> tuple[str, float, float] | None:
    """Tell from the losses of step 1, where parameters are still equal, how a batch's loss comes from its rows.

    Returns:
        "mean" (of the rows), "sum" or "other" (rows count for each other, or random numbers are drawn), the loss of one
        card on the rows of all ranks, and the mean of the ranks' losses; None where no losses were seen.
    """
    steps = [process.first("step") for process in (one, *ranks)]
    losses = [step["loss"] for step in steps if step is not None and step["loss"] is not None]
    if len(losses) <= len(ranks) or not all(math.isfinite(loss) for loss in losses):
        return None
    alone, mean = losses[0], sum(losses[1:]) / len(ranks)
    close = [math.isclose(alone, whole, rel_tol=ROUNDING_OF_LOSS, abs_tol=1e-6) for whole in (mean, mean * len(ranks))]
    if close[0]:
        by_row = all(step is not None and step.get("by_row") for step in steps)
        return "sum" if by_row else "mean", alone, mean
    return "sum" if close[1] else "other", alone, mean


def courses(one: Process, many: Process) -> list[Distance]:
    """Return the distances between one card and a rank, before the first step and after every one."""
    start = one.snapshot(0)
    found = []
    for step in range(min(one.steps, many.steps) + 1):
        first, second = one.snapshot(step), many.snapshot(step)
        if first is None or second is None:
            break
        found.append(distance(first, second, start, one.parameters()))
    return found
