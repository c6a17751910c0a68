"""A progress bar for large trees."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

_FEW = 10  # done before anyone could read a bar
_PAUSE = 0.1  # seconds between two drawings


@contextlib.contextmanager
def progress(total: int, *, shown: bool = True) -> Iterator[Callable[[], None]]:
    """Yield what to call whenever one more of ``total`` files is done.

    A bar is drawn on standard error if that is a terminal; it is gone afterwards.
    """
    if not shown or total < _FEW or sys.stderr is None or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress  # not cheap

    # No thread that redraws: it would hold locks while processes are started.
    with Progress(console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("converting", total=total)
        drawn = 0.0

        def advance() -> None:
            nonlocal drawn
            bar.advance(task)
            if time.monotonic() - drawn > _PAUSE:
                drawn = time.monotonic()
                bar.refresh()

        bar.refresh()
        yield advance
