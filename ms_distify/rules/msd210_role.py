'''The dataset of every training is known.

A training whose dataset cannot be followed back to a constructor would run on all rows on every rank, N times the work
for the same result, and nobody would see it. It is refused at the line where the way back ends. The pragma
``# ms-distify: train`` on the constructor's line settles it.

Before (refused)::

    model.train(10, registry["train"])
'''

from __future__ import annotations

from collections.abc import Iterator

from ..mindspore import names
from ..model import Decision
from . import NOTED, REFUSED, Context, decide, rule

CODE = "MSD210"


@rule(CODE, "the dataset of every training is known")
def check(context: Context) -> Iterator[Decision]:
    """Report the trainings and evaluations whose dataset is lost on the way back."""
    program = context.program
    settled = any(
        program.pragma(site.script, site.call, "train") for site in program.roles.sites
    )
    for sink, origin in program.roles.lost:
        root = origin.qualified.partition(".")[0]
        if origin.kind == "literal" or root in names.WRAPPERS:
            continue  # None for a dataset; a wrapper library has its own rule
        what = origin.reason or (f"{origin.qualified} is not a MindSpore dataset" if origin.qualified else "no dataset")
        where = origin.script.where(origin.node)
        if sink.role != "train":
            message = f"the dataset of {sink.what} is lost at {where}: {what}; it is taken to be whole"
            yield decide(CODE, NOTED, sink.script, sink.node, message)
        elif not settled:
            message = (
                f"the dataset of {sink.what} cannot be followed: {what} ({where}); "
                "write '# ms-distify: train' on the line of its constructor"
            )
            yield decide(CODE, REFUSED, sink.script, sink.node, message)
