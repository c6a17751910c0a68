"""Distances of parameters."""

from __future__ import annotations

import numpy as np
import pytest

from ms_distify.verify.compare import Distance, distance


def apart(way: float, difference: float, *, halves: bool = False, others: int = 0) -> Distance:
    """Return the distance of two trainings that go some way from 0, and of which one element ends elsewhere."""
    start, one = np.zeros(1 + others), np.full(1 + others, way)
    other = one.copy()
    other[0] += difference
    snapshots = [
        {"p00000": array.astype(np.float32), "checksums": np.array([number], np.uint32)}
        for number, array in enumerate((start, one, other))
    ]
    return distance(snapshots[1], snapshots[2], snapshots[0], ["w"], halves=halves)


@pytest.mark.parametrize(
    ("found", "equal", "tells"),
    [
        pytest.param(apart(1.0, 9e-6), True, True, id="rounding"),
        pytest.param(apart(1.0, 2e-3), False, True, id="more than that"),
        pytest.param(apart(1.0, 2e-3, halves=True), True, True, id="rounding of 16 bits"),
        pytest.param(apart(1.0, 0.5, halves=True), False, True, id="more than that of 16 bits"),
        pytest.param(apart(1e-5, 5e-6), False, True, id="half of a short way"),
        pytest.param(apart(1e-4, 9e-7), True, True, id="a hundredth of a short way"),
        pytest.param(apart(1e-7, 5e-8), True, False, id="a way as short as rounding"),
        pytest.param(apart(1e-7, 0.0), True, True, id="the very same"),
        pytest.param(apart(0.0, 1e-3), False, False, id="a way of one only"),
        pytest.param(apart(0.1, 5e-5, others=10_000), True, True, id="one element of many"),
    ],
)
def test_what_counts_as_equal(found: Distance, equal: bool, tells: bool) -> None:
    assert (found.equal, found.tells) == (equal, tells)
