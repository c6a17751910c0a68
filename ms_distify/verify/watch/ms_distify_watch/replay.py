"""Lets one card train on what N ranks trained on: batch k is the ranks' batches k, one behind the other."""

from __future__ import annotations

import json
import os
from typing import Any


class Replay:
    """The batches that ranks read, by iterator.

    Attributes:
        ends: for each iterator, after how many reads the ranks' epochs ended.
    """

    def __init__(self, replay: dict[str, Any]) -> None:
        self._folder: str = replay["folder"]
        self._ranks: int = replay["ranks"]
        self._shuffled: bool = replay["shuffled"]
        self._training: set[int] = set(replay["iterators"])
        self._columns: dict[int, list[str] | None] = {}
        self.ends: dict[int, set[int]] = {}
        reads: dict[int, int] = {}
        with open(os.path.join(self._folder, "0.jsonl"), encoding="utf-8") as file:
            for line in file:
                event = json.loads(line)
                if event["e"] == "read" and not event["drained"]:
                    self._columns.setdefault(event["i"], event["columns"])
                    reads[event["i"]] = event["k"] + 1
                elif event["e"] == "end" and not event["cut"]:
                    self.ends.setdefault(event["i"], set()).add(reads.get(event["i"], 0))

    def trains(self, iterator: int) -> bool:
        """Whether an iterator gave ranks what they trained on."""
        return iterator in self._training

    def read(self, iterator: int, number: int, as_numpy: bool) -> Any:
        """Return what one card reads in the place of the ranks; nothing where an epoch ends; None where they read no more.

        Raises:
            RuntimeError: the ranks' batches do not fit together.
        """
        import mindspore
        import numpy as np

        if number in self.ends.get(iterator, ()):
            self.ends[iterator].discard(number)
            return {} if self._columns.get(iterator) is not None else []
        parts = []
        for rank in range(self._ranks):
            place = os.path.join(self._folder, f"{rank}.batch{iterator:04d}.{number:06d}.npz")
            if not os.path.exists(place):
                return None
            with np.load(place, allow_pickle=False) as arrays:
                parts.append([arrays[name] for name in sorted(arrays.files)])
        try:
            joined = [np.concatenate(column) for column in zip(*parts)]
        except ValueError as error:
            raise RuntimeError(f"ms-distify verify: batches of ranks do not fit together: {error}") from None
        if self._shuffled:
            # In one order for all batches of a size: what is read side by side stays so.
            joined = [array[np.random.RandomState(len(array)).permutation(len(array))] for array in joined]
        plain = [array if as_numpy or array.dtype.kind in "US" else mindspore.Tensor(array) for array in joined]
        columns = self._columns.get(iterator)
        return plain if columns is None else dict(zip(columns, plain))
