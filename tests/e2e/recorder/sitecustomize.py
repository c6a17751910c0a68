"""Records what a MindSpore program does, without editing it: the rows it reads, the weights it starts and ends with.

Python imports this module at start-up when its folder is on PYTHONPATH. Nothing happens unless RECORD_TO names a folder.
One file a process is written there at exit: ``<rank or 'one'>.npz``.
"""

import atexit
import importlib.abc
import importlib.machinery
import os
import sys

FOLDER = os.environ.get("RECORD_TO")


class _After(importlib.abc.MetaPathFinder):
    """Calls a function once some module has been imported."""

    def __init__(self, actions):
        self.actions = actions

    def find_spec(self, name, path=None, target=None):
        action = self.actions.pop(name, None)
        if action is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        original = spec.loader.exec_module

        def exec_module(module):
            original(module)
            action(module)

        spec.loader.exec_module = exec_module
        return spec


class _Record:
    def __init__(self):
        self.batches = []
        self.parameters = []
        self.initial = {}
        self.registered = False

    def register(self):
        """Write at exit; registered late, because MindSpore frees its memory in an exit handler of its own."""
        if not self.registered:
            self.registered = True
            atexit.register(self.write)

    def iterators(self, module):
        record = self
        for name in ("TupleIterator", "DictIterator"):
            cls = getattr(module, name)
            original = cls._get_next

            def _get_next(self, _original=original):
                row = _original(self)
                values = list(row.values()) if isinstance(row, dict) else list(row or [])
                if values:
                    first = values[0]
                    array = first.asnumpy() if hasattr(first, "asnumpy") else first
                    # Not id(): the next iterator may stand where this one was.
                    number = self.__dict__.setdefault("_recorded_as", len({n for n, _ in record.batches}))
                    record.batches.append((number, array.copy()))
                    record.register()
                return row

            cls._get_next = _get_next

    def optimizers(self, module):
        record = self
        original = module.Optimizer.__init__

        def __init__(self, *args, **kwargs):
            original(self, *args, **kwargs)
            record.register()
            # By number: two networks may give their parameters the same names.
            for parameter in self.parameters:
                record.initial[len(record.parameters)] = parameter.asnumpy().copy()
                record.parameters.append(parameter)

        module.Optimizer.__init__ = __init__

    def write(self):
        import numpy as np

        arrays = {f"final/{i:03d}": p.asnumpy().copy() for i, p in enumerate(self.parameters)}
        arrays.update({f"initial/{i:03d}": value for i, value in self.initial.items()})
        for number, (iterator, batch) in enumerate(self.batches):
            arrays[f"batch/{iterator}/{number:05d}"] = np.asarray(batch)
        # Without a launcher DEVICE_ID and the like may still be set, so only RANK_ID tells a rank.
        np.savez(os.path.join(FOLDER, os.environ.get("RANK_ID", "one") + ".npz"), **arrays)


if FOLDER and os.environ.get("MS_ROLE") != "MS_SCHED":
    _record = _Record()
    sys.meta_path.insert(
        0,
        _After(
            {
                "mindspore.dataset.engine.iterators": _record.iterators,
                "mindspore.nn.optim.optimizer": _record.optimizers,
            }
        ),
    )
