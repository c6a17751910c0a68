"""The course of a training: parameters before it and after every step, losses, and the time steps take.

A step is seen by what it does: between two reads of data, parameters that an optimizer was given have changed.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import os
import sys
import time
import zlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .after import Actions
from .errors import watch_errors
from .log import Log, caller

# Of a parameter with more elements, this many are kept, at equal distances; all go into its checksum.
KEPT_ELEMENTS = 4096


class Course:
    """Follows the steps of one process.

    Attributes:
        steps: how many steps there have been.
        limit: how many are watched.
        over: whether the limit has been reached.
    """

    def __init__(self, config: dict[str, Any], log: Log) -> None:
        self.log = log
        self.limit: int = config["steps"]
        self.steps = 0
        self.over = False
        self._parameters: list[Any] = []
        self._last: list[Any] | None = None
        self._reads: list[tuple[int, int]] = []
        self._scalar: Any = None
        self._vector: Any = None
        self._of_gradients = False
        self._left: float | None = None
        self._spent = 0.0
        self._registered = self._halves = self._device_said = False

    # -- what the program does ------------------------------------------------------------------------------------

    def optimizer(self, built: Any) -> None:
        """An optimizer was built: its parameters are watched from now on."""
        parameters = list(getattr(built, "parameters", None) or [])
        if not parameters:
            groups = getattr(built, "param_groups", None) or []
            parameters = [parameter for group in groups for parameter in group["params"]]
        known = {id(parameter) for parameter in self._parameters}
        new = [parameter for parameter in parameters if id(parameter) not in known]
        self._parameters += new
        names = [str(parameter.name) for parameter in new]
        self.log.write("optimizer", cls=type(built).__name__, names=names, at=caller())
        self._at_exit()
        if self._last is not None and new:
            self._last = None
            self._snapshot()

    def halves(self) -> None:
        """The program calculates with numbers of 16 bits."""
        if not self._halves:
            self._halves = True
            self.log.write("halves", at=caller())

    def output(self, value: Any) -> None:
        """Some network or function ended at the top of the program with a value, which may be a loss."""
        if not self._of_gradients:
            self._take(value)

    def objective(self, value: Any) -> None:
        """Gradients of a value are taken: it is the loss, whatever networks give beside it."""
        self._scalar = self._vector = None
        self._of_gradients = True
        self._take(value)

    def _take(self, value: Any) -> None:
        first = value[0] if isinstance(value, (tuple, list)) and value else value
        shape = getattr(first, "shape", None)
        if "Float" not in str(getattr(first, "dtype", "")):
            return
        if shape in ((), (1,)):
            self._scalar = first
        elif isinstance(shape, tuple) and len(shape) == 1:
            self._vector = first

    def before_read(self) -> None:
        """The program asks for data: see what it did with what it got before."""
        now = time.perf_counter()
        if self._left is not None:
            self._spent += now - self._left
        self._look()

    def after_read(self, read: tuple[int, int] | None) -> None:
        """The program gets data: the number of its iterator, and of the read from it."""
        if read is not None:
            self._reads.append(read)
        self._left = time.perf_counter()

    def pending(self) -> list[tuple[int, int]]:
        """Return the reads since the last step."""
        return list(self._reads)

    # -- parameters -----------------------------------------------------------------------------------------------

    def load(self, load: Callable[[], Any]) -> Any:
        """The program loads parameters: what changes by that is no step."""
        self.before_read()
        self._left = None
        result = load()
        if self._last is not None and not self.over and self.log.owned:
            self._last = [_sample(parameter) for parameter in self._parameters]
        return result

    def _look(self) -> None:
        if not self._parameters or self.over or not self.log.owned:
            return
        if self._last is None:
            self._snapshot()
            return
        samples = [_sample(parameter) for parameter in self._parameters]
        if all((new == old).all() or _both_nan(new, old) for new, old in zip(samples, self._last)):
            return
        self.steps += 1
        # A loss of one number for each row has the gradient of their sum.
        by_row = self._scalar is None and self._vector is not None
        loss = _mean(self._vector if by_row else self._scalar)
        self._forget_loss()
        self.log.write("step", k=self.steps, reads=self._reads, loss=loss, by_row=by_row, seconds=self._spent)
        self._reads, self._spent = [], 0.0
        self._save(samples)
        if self.steps >= self.limit:
            self.over = True
            self.log.write("limit")

    def _snapshot(self) -> None:
        if not self._device_said:
            self._device_said = True
            context = sys.modules["mindspore"]
            self.log.write("device", target=context.get_context("device_target"), id=context.get_context("device_id"))
        self._reads, self._spent = self._reads[-8:], 0.0
        self._forget_loss()
        self._save([_sample(parameter) for parameter in self._parameters])

    def _forget_loss(self) -> None:
        self._scalar = self._vector = None
        self._of_gradients = False

    def _save(self, samples: list[Any]) -> None:
        import numpy as np

        self._last = samples
        arrays = {f"p{number:05d}": sample for number, sample in enumerate(samples)}
        sums = [zlib.crc32(np.ascontiguousarray(parameter.asnumpy()).tobytes()) for parameter in self._parameters]
        # Written whole or not at all: the process may be stopped at any time.
        place = self.log.path(f".step{self.steps:05d}.npz")
        temporary = place + ".part"
        with open(temporary, "wb") as file:
            np.savez(file, checksums=np.array(sums, dtype=np.uint32), **arrays)
        os.replace(temporary, place)

    # -- the end --------------------------------------------------------------------------------------------------

    def _at_exit(self) -> None:
        # Late, so that it comes before MindSpore's own handler, which frees its memory.
        if not self._registered:
            self._registered = True
            atexit.register(self._end)

    def _end(self) -> None:
        if self.log.owned:
            self.before_read()
            self.log.write("exit")


def _sample(parameter: Any) -> Any:
    array = parameter.asnumpy().reshape(-1)
    return array[:: max(1, -(-array.size // KEPT_ELEMENTS))].copy()


def _both_nan(new: Any, old: Any) -> bool:
    return bool(((new == old) | ((new != new) & (old != old))).all())


def _mean(value: Any) -> float | None:
    if value is None:
        return None
    try:
        return float(value.asnumpy().mean())
    except (RuntimeError, TypeError, ValueError):
        return None


def watch(course: Course, actions: Actions, divide: int) -> None:
    """Watch the optimizers, networks and compiled functions of a program, and how it ends; divide gradients."""
    depth = [0]

    def outermost(cls: Any) -> None:
        original = cls.__call__

        @functools.wraps(original)
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            depth[0] += 1
            try:
                result = original(self, *args, **kwargs)
            finally:
                depth[0] -= 1
            if depth[0] == 0:
                course.output(result)
            return result

        cls.__call__ = __call__

    def cells(module: ModuleType) -> None:
        outermost(module.Cell)
        to_float = module.Cell.to_float

        @functools.wraps(to_float)
        def watched(self: Any, dst_type: Any) -> Any:
            if str(dst_type).endswith("loat16"):
                course.halves()
            return to_float(self, dst_type)

        module.Cell.to_float = watched

    def precision(module: ModuleType) -> None:
        for name, parameter in (("auto_mixed_precision", "amp_level"), ("build_train_network", "level")):
            original = getattr(module, name)

            def mixed(*args: Any, _original: Any = original, _level: str = parameter, **kwargs: Any) -> Any:
                bound = inspect.signature(_original).bind_partial(*args, **kwargs)
                if bound.arguments.get(_level, "O0") != "O0":
                    course.halves()
                return _original(*args, **kwargs)

            setattr(module, name, functools.wraps(original)(mixed))

    def functions(module: ModuleType) -> None:
        for name in ("_JitExecutor", "_MindsporeFunctionExecutor"):
            if "__call__" in vars(getattr(module, name, object)):
                outermost(getattr(module, name))

    def gradients(module: ModuleType) -> None:
        original = getattr(module, "_pynative_forward_run", None)
        if original is None:
            return

        @functools.wraps(original)
        def forward(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            # The arguments and what the function gave for them.
            if isinstance(result, tuple) and len(result) == 2:
                course.objective(result[1])
            return result

        module._pynative_forward_run = forward  # type: ignore[attr-defined]

    def loading(module: ModuleType) -> None:
        original = module.load_param_into_net

        @functools.wraps(original)
        def load_param_into_net(*args: Any, **kwargs: Any) -> Any:
            return course.load(lambda: original(*args, **kwargs))

        module.load_param_into_net = load_param_into_net  # type: ignore[attr-defined]

    def optimizers(module: ModuleType) -> None:
        original = module.Optimizer.__init__
        signature = inspect.signature(original)

        @functools.wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            if divide != 1 and "loss_scale" in signature.parameters:
                bound = signature.bind_partial(self, *args, **kwargs)
                bound.arguments["loss_scale"] = float(bound.arguments.get("loss_scale", 1.0)) * divide
                args, kwargs = bound.args[1:], bound.kwargs
            original(self, *args, **kwargs)
            if divide != 1 and not _divides(type(self)):
                course.log.write("undivided", cls=type(self).__name__)
            course.optimizer(self)

        module.Optimizer.__init__ = __init__

    actions.after("mindspore.nn.cell", cells)
    actions.after("mindspore.train.amp", precision)
    actions.after("mindspore.train.serialization", loading)
    actions.after("mindspore.ops.composite.base", gradients)
    for name in ("mindspore.graph.api", "mindspore.common.api"):
        actions.after(name, functions)
    for name in ("mindspore.nn.optim.optimizer", "mindspore.experimental.optim.optimizer"):
        actions.after(name, optimizers)
    _Reducers(course).watch(actions)
    watch_errors(course.log)


def _divides(cls: Any) -> bool:
    """Whether an optimizer divides gradients by its ``loss_scale``: AdamWeightDecay and others only take it."""
    try:
        return "scale_grad" in inspect.getsource(cls.construct)
    except (AttributeError, OSError, TypeError):
        return False


class _Reducers:
    """Sees gradients that pass through two reducers, where reducers run in Python (PyNative mode)."""

    def __init__(self, course: Course) -> None:
        self.course = course
        self.results: list[Any] = []
        self.step = -1

    def watch(self, actions: Actions) -> None:
        actions.after("mindspore.nn.wrap.grad_reducer", self._wrap)

    def _wrap(self, module: ModuleType) -> None:
        cls = module.DistributedGradReducer
        built, construct = cls.__init__, cls.__call__

        @functools.wraps(built)
        def __init__(this: Any, *args: Any, **kwargs: Any) -> None:
            built(this, *args, **kwargs)
            parameters = args[0] if args else kwargs.get("parameters", ())
            # The parameter itself: other networks may have one of this name.
            first = id(parameters[0]) if len(parameters) else 0
            self.course.log.write("reducer", at=caller(), first=first)

        def __call__(this: Any, *args: Any, **kwargs: Any) -> Any:
            if self.step != self.course.steps:
                self.step, self.results = self.course.steps, []
            given = args[0] if args else ()
            given = given if isinstance(given, (tuple, list)) else (given,)
            if any(one is other for one in given for other in self.results):
                self.course.log.write("reduced twice", step=self.step + 1, at=caller())
            result = construct(this, *args, **kwargs)
            # Kept, so that no other tensor takes its place in memory before the step ends.
            self.results += result if isinstance(result, (tuple, list)) else [result]
            return result

        cls.__init__, cls.__call__ = __init__, __call__
