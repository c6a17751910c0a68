"""What a watched process recorded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

Event = dict[str, Any]


@dataclass
class Process:
    """One process of a run.

    Attributes:
        folder: where its run is recorded.
        name: "one" or the rank.
        events: what was seen, in order.
    """

    folder: Path
    name: str
    events: list[Event] = field(default_factory=list)

    def all(self, kind: str) -> Iterator[Event]:
        """Yield the events of one kind."""
        return (event for event in self.events if event["e"] == kind)

    def first(self, kind: str) -> Event | None:
        """Return the first event of a kind."""
        return next(self.all(kind), None)

    @property
    def steps(self) -> int:
        """How many training steps were seen."""
        return sum(1 for _ in self.all("step"))

    @property
    def over(self) -> bool:
        """Whether all steps that were asked for have been taken."""
        return self.first("limit") is not None

    def losses(self) -> list[float]:
        """Return the loss of each step; nothing where none was seen."""
        found = [event["loss"] for event in self.all("step")]
        return [] if all(loss is None for loss in found) else [float("nan") if x is None else x for x in found]

    def parameters(self) -> list[str]:
        """Return the names of the watched parameters, in the order of the snapshots."""
        return [name for event in self.all("optimizer") for name in event["names"]]

    def snapshot(self, step: int) -> dict[str, np.ndarray[Any, Any]] | None:
        """Return samples of all parameters after a step (0: before the first), and ``checksums`` of the whole of them."""
        import numpy as np

        place = self.folder / f"{self.name}.step{step:05d}.npz"
        if not place.exists():
            return None
        with np.load(place, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}

    # -- data -----------------------------------------------------------------------------------------------------

    def training(self) -> list[int]:
        """Return the iterators that gave what was trained on: most of their reads came, one by one, before steps."""
        before: Counter[int] = Counter()
        last: Counter[int] = Counter()
        for event in self.all("step"):
            if event["reads"]:
                last[event["reads"][-1][0]] += 1
            before.update({i for i, _ in event["reads"]})
        read: Counter[int] = Counter()
        for event in self.events:
            if event["e"] == "limit":
                break
            if event["e"] == "read" and not event["evaluation"]:
                read[event["i"]] += 1
        # An evaluation between two steps is not training; what is read in turns with another for every step is.
        return sorted(i for i in before if last[i] or (read[i] > 2 and 10 * before[i] >= 9 * read[i]))

    def evaluation(self) -> list[int]:
        """Return the other iterators that were read."""
        training = set(self.training())
        datasets = {self.iterators()[i]["dataset"] for i in training}
        return [i for i, event in self.iterators().items() if i not in training and event["dataset"] not in datasets]

    def iterators(self) -> dict[int, Event]:
        """Return what is known of each iterator."""
        return {event["i"]: event for event in self.all("iterator")}

    def epochs(self, iterator: int) -> list[tuple[list[list[str]], bool]]:
        """Return, for each epoch of an iterator, the rows of its batches (as digests), and whether it was read to its end.

        What was read on without training counts with the rest.
        """
        epochs: list[tuple[list[list[str]], bool]] = []
        batches: list[list[str]] = []
        for event in self.events:
            if event.get("i") != iterator:
                continue
            if event["e"] == "read":
                batches.append(event["rows"])
            elif event["e"] == "drained" or (event["e"] == "end" and batches):
                epochs.append((batches, event["e"] == "drained" or not event["cut"]))
                batches = []
        if batches:
            epochs.append((batches, False))
        return epochs

    def writes(self) -> set[str]:
        """Return the files that were written."""
        return {event["path"] for event in self.all("write")}


def read_process(folder: Path, name: str) -> Process:
    """Read what a process recorded, as far as it came."""
    process = Process(folder, name)
    # What processes that it started have written counts as its own.
    for place in (folder / f"{name}.jsonl", *sorted(folder.glob(f"{name}.*.writes"))):
        if not place.exists():
            continue
        for line in place.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                process.events.append(json.loads(line))
            except ValueError:
                break  # it was stopped in the middle of a line
    return process
