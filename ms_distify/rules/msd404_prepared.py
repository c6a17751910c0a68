"""Data that the program prepares before it reads it.

``FileWriter`` on every rank writes one MindRecord file from N processes; on rank 0 only, the others read before it is
finished. Neither is safe without a wait, so a program that writes its training data is refused.

Before (refused)::

    writer = FileWriter("train.mindrecord", 1, overwrite=True)
    ...
    train = ds.MindDataset("train.mindrecord")
"""

from __future__ import annotations

from collections.abc import Iterator

from ..mindspore import names
from ..model import Decision
from . import KEPT, NOTED, REFUSED, Context, decide, rule

CODE = "MSD404"
_DOWNLOADS = (
    "urllib.request.urlretrieve", "download.download", "mindvision.dataset.DownLoad", "wget.download",
    "gdown.download", "zipfile.ZipFile", "tarfile.open",
)  # fmt: skip


@rule(CODE, "data prepared by the program")
def check(context: Context) -> Iterator[Decision]:
    """Refuse MindRecord writers; note downloads and unpacking."""
    program = context.program
    for script, call, name in program.calls(names.FILE_WRITER):
        del name
        if program.guarded_by_rank(script, call):
            yield decide(CODE, KEPT, script, call, "FileWriter already depends on the rank")
        elif call in program.timeline.visited:
            message = (
                "every rank would write this MindRecord file at once; write it in a script of its own, before training"
            )
            yield decide(CODE, REFUSED, script, call, message)
    for script, call, name in program.calls(*_DOWNLOADS):
        if not program.guarded_by_rank(script, call):
            message = f"{name} runs on every rank at once; prepare the data before the start"
            yield decide(CODE, NOTED, script, call, message)
