"""Runs the conversion where recursion may go deep."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

Result = TypeVar("Result")

# Python compiles `a and b and ...` of any length; a tree has one level for each.
# Memory of a stack is only used where it is touched.
_FRAMES = 200_000
_STACKS = (512 << 20, 128 << 20, 32 << 20)
WORKER = "ms-distify"  # the name of the threads
_changing = threading.Lock()


def on_deep_stack(work: Callable[[], Result]) -> Result:
    """Run ``work`` in a thread with a large stack.

    libcst reads and writes expressions by recursion, and its native half kills the process when the stack of 8 MB
    that a main thread has runs out, which happens to programs that Python itself runs (FACTS 6).
    """
    result: list[Result] = []
    failure: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    with _deep_recursion():
        thread = _start(run)
        done.wait()  # not join(): interrupted there, Python 3.11 takes the thread for ended
        thread.join()
    if failure:
        raise failure[0]
    return result[0]


_running: list[int] = []  # the recursion limits found by the conversions that run now


@contextlib.contextmanager
def _deep_recursion() -> Iterator[None]:
    """Raise the interpreter's recursion limit until the last of the conversions that run at once has ended."""
    with _changing:
        _running.append(sys.getrecursionlimit())
        sys.setrecursionlimit(max(_running[0], _FRAMES))
    try:
        yield
    finally:
        with _changing:
            first = _running.pop(0)
            if _running:
                _running[0] = first
            else:
                sys.setrecursionlimit(first)


def _start(run: Callable[[], None]) -> threading.Thread:
    """Start a daemon (so that Ctrl-C need not wait for it) with the largest stack that the system gives."""
    with _changing:
        before = threading.stack_size()
        try:
            for size in _STACKS:
                thread = threading.Thread(target=run, name=WORKER, daemon=True)
                threading.stack_size(size)
                with contextlib.suppress(RuntimeError):  # "can't start new thread"
                    thread.start()
                    return thread
            raise MemoryError("no memory for a thread")
        finally:
            threading.stack_size(before)
