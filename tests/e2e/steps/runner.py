"""Runs many step programs one after the other in one process, and records the weights each starts and ends with.

Starting MindSpore takes longer than training one of these programs. So one process runs them all: ``python runner.py
PLAN OUT``, where PLAN is a JSON list of ``{"name", "file", "arguments"}``. Every program runs as a script does (as
``__main__``, with its own ``sys.argv`` and its folder first on ``sys.path``). Between programs the parallel context goes
back to one card, so that each has to set it up itself. ``init`` is the one thing that a process cannot do twice: the
first program that calls it runs the real one, for the others it has been done.
"""

import contextlib
import gc
import json
import os
import runpy
import sys
import time
import traceback

import mindspore as ms
import mindspore.communication
import mindspore.communication.management
import mindspore.experimental.optim.optimizer
import mindspore.nn.optim.optimizer
import numpy as np

_PARAMETERS = []
_INITIAL = []
_INIT = mindspore.communication.init
_begun = []


def _init_once(*arguments, **keywords):
    if not _begun:
        _INIT(*arguments, **keywords)
        _begun.append(True)


def _watch(cls):
    """Remember the parameters of every optimizer that is built, and their values then."""
    original = cls.__init__

    def __init__(self, *arguments, **keywords):
        original(self, *arguments, **keywords)
        for parameter in self.parameters:
            if not any(parameter is other for other in _PARAMETERS):
                _PARAMETERS.append(parameter)
                _INITIAL.append(parameter.asnumpy().copy())

    cls.__init__ = __init__


def _run(job):
    _PARAMETERS.clear()
    _INITIAL.clear()
    folder = os.path.dirname(job["file"])
    before = set(sys.modules)
    sys.argv = [job["file"], *job["arguments"]]
    sys.path.insert(0, folder)
    try:
        runpy.run_path(job["file"], run_name="__main__")
        final = [parameter.asnumpy().copy() for parameter in _PARAMETERS]
    finally:
        sys.path.remove(folder)
        for name in set(sys.modules) - before:
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(folder + os.sep):
                del sys.modules[name]
        with contextlib.suppress(Exception):
            ms.reset_auto_parallel_context()
    return [*_INITIAL], final


def main(plan, out):
    mindspore.communication.init = mindspore.communication.management.init = _init_once
    _watch(mindspore.nn.optim.optimizer.Optimizer)
    _watch(mindspore.experimental.optim.optimizer.Optimizer)
    arrays, notes = {}, {}
    os.makedirs(out, exist_ok=True)
    with open(plan) as file:
        jobs = json.load(file)
    for job in jobs:
        began = time.time()
        try:
            initial, final = _run(job)
        except BaseException:
            notes[job["name"]] = traceback.format_exc()
            print(job["name"], "failed:", notes[job["name"]], flush=True)
        else:
            for number, (start, end) in enumerate(zip(initial, final)):
                arrays[f"{job['name']}/initial/{number:03d}"] = start
                arrays[f"{job['name']}/final/{number:03d}"] = end
        gc.collect()
        print(f"{job['name']}: {time.time() - began:.2f} s", flush=True)
    rank = os.environ.get("RANK_ID", "one")
    np.savez(os.path.join(out, f"{rank}.npz"), **arrays)
    with open(os.path.join(out, f"{rank}.json"), "w") as file:
        json.dump(notes, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
