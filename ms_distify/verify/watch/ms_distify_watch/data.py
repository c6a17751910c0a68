"""What a program reads: which rows, in which order, through which pipeline; and where it is made to stop.

After the last watched step, training data ends: each further epoch has one batch, so that programs come to their end and
what they do there is seen too. Evaluation reads as many batches as there are watched steps, at most.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
from types import ModuleType
from typing import Any

from .after import Actions
from .course import Course
from .replay import Replay

# How long reading on to the end of an epoch may take, and how many epochs may follow the last step.
DRAIN_SECONDS = 15.0
FURTHER_EPOCHS = 40
# How much of the batches of a run is kept for one card to train on again.
KEPT_BYTES = 2_000_000_000


class _Pipeline:
    """What is known of one iterator."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.reads = 0  # of the whole iterator
        self.epoch_reads = 0
        self.evaluation = False


class Data:
    """Follows the iterators of one process."""

    def __init__(self, config: dict[str, Any], course: Course) -> None:
        self.config, self.course, self.log = config, course, course.log
        self.iterators: dict[int, _Pipeline] = {}
        self.datasets: list[Any] = []
        self.training: set[int] = set()  # datasets that were read just before a step
        self.evaluated: set[int] = set()  # others, that were read once
        self.dataset_of: dict[int, int] = {}
        self.in_evaluation = 0
        self.batches = 0
        self.further = 0
        self.kept_bytes = 0
        self.replay: Replay | None = Replay(config["replay"]) if config.get("replay") else None

    # -- one read -------------------------------------------------------------------------------------------------

    def read(self, iterator: Any, original: Any, empty: Any) -> Any:
        """Hand on what an iterator reads, or end it; see what the program did before."""
        if not self.log.owned:
            return original(iterator)
        reads_before, steps_before = self.course.pending(), self.course.steps
        self.course.before_read()
        if self.course.steps > steps_before and reads_before:
            self.training.add(self.dataset_of[reads_before[-1][0]])
        state = self._state(iterator)
        evaluation = self.in_evaluation > 0
        state.evaluation = state.evaluation or evaluation
        if self._ends(state, evaluation):
            if self.config["drain"] and state.reads and not state.evaluation and self.further == 0:
                self._drain(state, iterator, original)
            return self._end(state, True, empty)
        row = self._next(state, iterator, original)
        if not row:
            return self._end(state, False, row)
        read = (state.number, state.reads)
        self._record(state, row, evaluation, False)
        state.reads += 1
        state.epoch_reads += 1
        self.course.after_read(None if evaluation else read)
        return row

    def _next(self, state: _Pipeline, iterator: Any, original: Any) -> Any:
        if self.replay is not None and self.replay.trains(state.number):
            found = self.replay.read(state.number, state.reads, bool(getattr(iterator, "_output_numpy", False)))
            if found is not None:
                return found
            if not self.course.over:
                # Rows of its own would make one card differ from ranks for no reason.
                raise RuntimeError(
                    "ms-distify verify: the ranks' batches of this step cannot be put together (their columns have no "
                    "first dimension in common, or they are too large to be kept)"
                )
        return original(iterator)

    def _end(self, state: _Pipeline, cut: bool, empty: Any) -> Any:
        self.log.write("end", i=state.number, cut=cut, reads=state.epoch_reads)
        if self.dataset_of[state.number] not in self.training:
            self.evaluated.add(self.dataset_of[state.number])
        state.epoch_reads = 0
        if self.course.over and not state.evaluation:
            self.further += 1
            if self.further > FURTHER_EPOCHS:
                self.log.write("stopped")
                raise SystemExit(0)
        self.course.after_read(None)
        return empty

    def _ends(self, state: _Pipeline, evaluation: bool) -> bool:
        """Whether an iterator has given what it may."""
        known = self.dataset_of[state.number] in self.training
        limit = self.config["steps"] + (0 if evaluation else 1)
        if self.course.over and (known or self.dataset_of[state.number] in self.evaluated):
            return state.epoch_reads >= 1
        return (evaluation or not known) and state.epoch_reads >= limit

    def _state(self, iterator: Any) -> _Pipeline:
        number = iterator.__dict__.get("_watched_as")
        if number is None:
            number = iterator.__dict__["_watched_as"] = len(self.iterators)
            dataset = iterator.__dict__.get("_Iterator__ori_dataset", iterator)
            place = next((i for i, other in enumerate(self.datasets) if other is dataset), None)
            if place is None:
                place = len(self.datasets)
                self.datasets.append(dataset)
            self.dataset_of[number] = place
            self.iterators[number] = _Pipeline(number)
            self.log.write(
                "iterator",
                i=number,
                dataset=place,
                batches=[node.__dict__["_watched_batch"] for node in _chain(dataset) if "_watched_batch" in vars(node)],
            )
        return self.iterators[number]

    def _drain(self, state: _Pipeline, iterator: Any, original: Any) -> None:
        """Read on to the end of the epoch without training: which rows there would be."""
        until = time.monotonic() + DRAIN_SECONDS
        while time.monotonic() < until:
            row = original(iterator)
            if not row:
                self.log.write("drained", i=state.number)
                return
            self._record(state, row, False, True)
            state.reads += 1
            state.epoch_reads += 1

    # -- what is kept of it ---------------------------------------------------------------------------------------

    def _record(self, state: _Pipeline, row: Any, evaluation: bool, drained: bool) -> None:
        import numpy as np

        columns = list(row) if isinstance(row, dict) else None
        values = list(row.values()) if isinstance(row, dict) else list(row)
        arrays = [np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value) for value in values]
        lengths = {array.shape[0] if array.ndim else None for array in arrays}
        together = len(lengths) == 1 and None not in lengths
        count = arrays[0].shape[0] if together else 1
        keep = self.config["keep_batches"] and together and not (evaluation or drained or self.course.over)
        if keep and self.kept_bytes < KEPT_BYTES and all(array.dtype != object for array in arrays):
            self.kept_bytes += sum(array.nbytes for array in arrays)
            place = self.log.path(f".batch{state.number:04d}.{state.reads:06d}.npz")
            with open(place + ".part", "wb") as file:
                np.savez(file, **{f"c{number:03d}": array for number, array in enumerate(arrays)})
            os.replace(place + ".part", place)
        rows = [_digest([array[i] for array in arrays]) for i in range(count)] if together else [_digest(arrays)]
        self.log.write(
            "read", i=state.number, k=state.reads, rows=rows, evaluation=evaluation, drained=drained, columns=columns
        )


def _digest(parts: list[Any]) -> str:
    import numpy as np

    total = hashlib.blake2b(digest_size=8)
    for part in parts:
        array = np.ascontiguousarray(part)
        total.update(array.tobytes() if array.dtype != object else repr(array.tolist()).encode())
    return total.hexdigest()


def _chain(dataset: Any) -> list[Any]:
    found, left = [], [dataset]
    while left:
        node = left.pop()
        if hasattr(node, "children"):
            found.append(node)
            left += node.children
    return found


def watch(config: dict[str, Any], course: Course, actions: Actions) -> None:
    """Watch what the program reads."""
    state = Data(config, course)

    def iterators(module: ModuleType) -> None:
        for name, empty in (("TupleIterator", []), ("DictIterator", {})):
            cls = getattr(module, name)
            original = cls._get_next

            def _get_next(self: Any, _original: Any = original, _empty: Any = empty) -> Any:
                return state.read(self, _original, type(_empty)())

            cls._get_next = _get_next

    def datasets(module: ModuleType) -> None:
        for name in ("batch", "padded_batch"):
            original = getattr(module.Dataset, name)

            def batch(self: Any, *args: Any, _original: Any = original, **kwargs: Any) -> Any:
                number = state.batches
                state.batches += 1
                if number in config["enlarge"]:
                    args, kwargs = _enlarged(args, kwargs, config["factor"])
                result = _original(self, *args, **kwargs)
                result.__dict__["_watched_batch"] = number
                return result

            setattr(module.Dataset, name, functools.wraps(original)(batch))

    def models(module: ModuleType) -> None:
        for name in ("eval", "_eval_in_fit"):
            original = getattr(module.Model, name)

            def evaluate(self: Any, *args: Any, _original: Any = original, **kwargs: Any) -> Any:
                state.in_evaluation += 1
                try:
                    return _original(self, *args, **kwargs)
                finally:
                    state.in_evaluation -= 1

            setattr(module.Model, name, functools.wraps(original)(evaluate))

    actions.after("mindspore.dataset.engine.iterators", iterators)
    actions.after("mindspore.dataset.engine.datasets", datasets)
    actions.after("mindspore.train.model", models)


def _enlarged(args: tuple[Any, ...], kwargs: dict[str, Any], factor: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of ``batch`` with a larger size of the batch."""
    if args and isinstance(args[0], int):
        return (args[0] * factor, *args[1:]), kwargs
    if isinstance(kwargs.get("batch_size"), int):
        return args, {**kwargs, "batch_size": kwargs["batch_size"] * factor}
    return args, kwargs
