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

# Sums of another order differ in the last digits. A difference whose length, over all parameters, is below this part of
# the way that training went so far is that (numbers of 16 bits: the second part).
ROUNDING_OF_WAY = 1e-3
ROUNDING_OF_HALVES = 3e-2
# And so is one of no parameter more than this part of the largest way of any: not less than the first bound, where
# parameters themselves are rounded, and not more than the second.
ROUNDING_OF_ONE = 1e-2
ROUNDING = (1e-6, 1e-5)
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
        way: the largest change of any element from the start.
        halves: whether the program calculates with 16 bits.
    """

    largest: float
    where: str
    apart: bool
    relative: float
    count: int
    way: float = 0.0
    halves: bool = False

    @property
    def equal(self) -> bool:
        """Whether the difference is one of rounding."""
        bound = min(max(ROUNDING_OF_ONE * self.way, ROUNDING[0]), ROUNDING[1])
        return self.largest <= bound or self.relative <= (ROUNDING_OF_HALVES if self.halves else ROUNDING_OF_WAY)

    @property
    def tells(self) -> bool:
        """Whether training went further than rounding goes, so that an equal end means something."""
        return self.way > 2 * ROUNDING[0] or self.relative <= ROUNDING_OF_WAY


def distance(
    first: Snapshot, second: Snapshot, start: Snapshot | None, names: list[str], *, halves: bool = False
) -> Distance:
    """Return the distance of two snapshots."""
    import numpy as np

    keys = sorted(key for key in first if key != "checksums" and key in second)
    sums = first["checksums"], second["checksums"]
    if sums[0].shape == sums[1].shape and bool((sums[0] == sums[1]).all()):
        return Distance(0.0, "", False, 0.0, len(keys), halves=halves)  # also where they are no numbers
    largest, where, square, way, furthest = 0.0, "", 0.0, 0.0, 0.0
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
            moved = np.abs(one - start[key])
            way += float((moved**2).sum())
            furthest = max(furthest, float(moved.max()) if moved.size else 0.0)
    if not where and sums[0].shape == sums[1].shape:
        where = _name(names, keys[int(np.flatnonzero(sums[0] != sums[1])[0])])
    relative = math.sqrt(square / way) if way else 0.0 if not square else math.inf
    return Distance(largest, where, True, relative, len(keys), furthest, halves)


def _name(names: list[str], key: str) -> str:
    number = int(key[1:])
    return names[number] if number < len(names) else f"parameter {number}"


def equal_ranks(ranks: list[Process]) -> tuple[list[float], Check]:
    """Compare ranks with rank 0 after every step: the largest differences, and the check."""
    name = "equal course"
    steps = min(rank.steps for rank in ranks)
    between: list[float] = []
    wrong: Check | None = None
    compared = 0
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
            compared += bool(step)
        between.append(largest)
    if wrong is not None:
        return between, wrong
    if not compared:
        return between, Check(name, NOT_COMPARED, "no training step was seen on all ranks")
    return between, Check(name, OK, f"largest difference between ranks over {steps} steps: 0", 0.0)


def loss_rounding(process: Process) -> float:
    """Return the part of a loss up to which two are equal."""
    return ROUNDING_OF_HALVES if process.first("halves") else ROUNDING_OF_LOSS


def courses(one: Process, many: Process) -> list[Distance]:
    """Return the distances between one card and a rank, before the first step and after every one."""
    start = one.snapshot(0)
    halves = one.first("halves") is not None
    found = []
    for step in range(min(one.steps, many.steps) + 1):
        first, second = one.snapshot(step), many.snapshot(step)
        if first is None or second is None:
            break
        found.append(distance(first, second, start, one.parameters(), halves=halves))
    return found
