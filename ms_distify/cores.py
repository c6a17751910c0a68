"""Runs one function over many items, on all cores where there are enough of them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# A process takes about as long to start as the conversion of this many files.
_WORTH_A_PROCESS = 8
_work: Callable[[Any], Any]


def run_all(
    work: Callable[[Item], Result], items: Sequence[Item], advance: Callable[[], None] = lambda: None
) -> list[Result]:
    """Return ``work(item)`` for every item, in their order.

    Args:
        work: what to do; where other processes do it, it is pickled, and so are items and results.
        items: to what.
        advance: called whenever one more is done.

    Raises:
        Whatever ``work`` raises; the rest is given up then.
    """
    processes = min(os.cpu_count() or 1, len(items) // _WORTH_A_PROCESS)
    found: dict[int, Result] = {}
    if processes > 1:
        _in_processes(processes, work, items, found, advance)
    for number, item in enumerate(items):
        if number not in found:
            found[number] = work(item)
            advance()
    return [found[number] for number in range(len(items))]


def _in_processes(
    processes: int,
    work: Callable[[Item], Result],
    items: Sequence[Item],
    found: dict[int, Result],
    advance: Callable[[], None],
) -> None:
    """Let other processes do the work; what is missing when they cannot go on is left to the caller."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    # Not fork: it would copy locks that other threads hold at that moment.
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _begin, (work,))
    try:
        futures = {pool.submit(_do, item): number for number, item in enumerate(items)}
        for future in as_completed(futures):
            found[futures[future]] = future.result()
            advance()
    except BrokenProcessPool:
        pass  # the system killed one, mostly for want of memory: one process may still do
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        pool.shutdown()


def _begin(work: Callable[[Any], Any]) -> None:
    """Prepare a process: Ctrl-C is its parent's business, and it ends when that does."""
    global _work
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _do(item: Any) -> Any:
    return _work(item)
