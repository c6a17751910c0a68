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
# A parameter that is this many times further apart, measured by its own way and beyond what its numbers can hold, is looked
# at by itself: a fault in a small one is little among all, and so is one whose gradient is nothing but rounding.
OWN_WAY = 10


@dataclass(frozen=True)
class Stray:
    """A parameter that is further apart than rounding of its own numbers makes it.

    Attributes:
        key: its key in snapshots.
        name: its name.
        largest: the largest difference of an element.
        relative: length of the difference over the length of its own way.
        length: length of the difference.
    """

    key: str
    name: str
    largest: float
    relative: float
    length: float


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
        strays: parameters that are far apart for their own way, the furthest first.
        length: length of the difference.
    """

    largest: float
    where: str
    apart: bool
    relative: float
    count: int
    way: float = 0.0
    halves: bool = False
    strays: tuple[Stray, ...] = ()
    length: float = 0.0

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
    first: Snapshot, second: Snapshot, start: Snapshot | None, names: list[str], *, halves: bool = False, steps: int = 1
) -> Distance:
    """Return the distance of two snapshots, taken some steps from the start."""
    import numpy as np

    keys = sorted(key for key in first if key != "checksums" and key in second)
    sums = first["checksums"], second["checksums"]
    if sums[0].shape == sums[1].shape and bool((sums[0] == sums[1]).all()):
        return Distance(0.0, "", False, 0.0, len(keys), halves=halves)  # also where they are no numbers
    largest, where, square, way, furthest = 0.0, "", 0.0, 0.0, 0.0
    strays = []
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
            # Each step rounds a parameter to a number that it can hold, the next one up or down.
            own = steps * np.finfo(first[key].dtype).eps * np.maximum(np.abs(one), np.abs(start[key]))
            length = float(np.linalg.norm(np.maximum(apart - own, 0.0)))
            part = length / float(np.linalg.norm(moved)) if moved.any() else math.inf
            if length and part > OWN_WAY * (ROUNDING_OF_HALVES if halves else ROUNDING_OF_WAY):
                strays.append(Stray(key, _name(names, key), here, part, length))
    if not where and sums[0].shape == sums[1].shape:
        where = _name(names, keys[int(np.flatnonzero(sums[0] != sums[1])[0])])
    relative = math.sqrt(square / way) if way else 0.0 if not square else math.inf
    strays.sort(key=lambda stray: -stray.relative)
    return Distance(largest, where, True, relative, len(keys), furthest, halves, tuple(strays), math.sqrt(square))


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
        found.append(distance(first, second, start, one.parameters(), halves=halves, steps=step))
    return found


def rounding_of(one: Process, other: Process, step: int, key: str | None = None) -> float:
    """Return the largest length of the difference, up to a step, of two runs that only rounding tells apart.

    Args:
        one: a run.
        other: the same on the same rows in another order.
        step: the last step that counts.
        key: the one parameter that counts; None for all of them.
    """
    import numpy as np

    largest = 0.0
    for number in range(1, step + 1):
        first, second = one.snapshot(number), other.snapshot(number)
        if first is None or second is None:
            break
        keys = [key] if key is not None else [name for name in first if name != "checksums"]
        pairs = [(first[name], second[name]) for name in keys if name in first and name in second]
        square = sum(float(((a.astype(np.float64) - b) ** 2).sum()) for a, b in pairs if a.shape == b.shape)
        largest = max(largest, math.sqrt(square))
    return largest
