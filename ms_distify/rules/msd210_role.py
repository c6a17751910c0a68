"""The dataset of every training is known.

A training whose dataset cannot be followed back to a constructor would run on all rows on every rank, N times
the work for the same result, and nobody would see it. It is refused at the line where it reads its rows. The
pragmas ``# ms-distify: train`` and ``# ms-distify: eval`` on the lines of the constructors settle it: at
least one says train, and none is left whose role is unknown. Rows that come from no MindSpore dataset at all
(arrays, files read by hand) cannot be dealt out: feed the training from ``NumpySlicesDataset`` or
``GeneratorDataset``.

Before (refused)::

    model.train(10, registry["train"])
"""

from __future__ import annotations

from collections.abc import Iterator

from ..mindspore import wrappers
from ..model import Decision
from ..reading.flow import Origin
from ..reading.roles import Sink
from . import NOTED, REFUSED, Context, decide, rule

CODE = "MSD210"


@rule(CODE, "the dataset of every training is known")
def check(context: Context) -> Iterator[Decision]:
    """Report the trainings and evaluations whose dataset is lost on the way back."""
    program = context.program
    settled = _settled(context)
    told = False
    for sink, origin in program.roles.lost:
        if _is_nothing(sink, origin):
            continue
        if sink.role != "train":
            message = f"the dataset of {sink.what} is lost at {_end(origin)}; it is taken to be whole"
            yield decide(CODE, NOTED, sink.script, sink.node, message)
        elif not settled:
            told = True
            yield decide(CODE, REFUSED, sink.script, sink.node, _message(sink, origin, bool(program.roles.sites)))
    if not told and not any(context.role(site)[0] == "train" for site in program.roles.sites):
        yield from _without_data(context)


def _settled(context: Context) -> bool:
    """Whether pragmas tell the role of every constructor that the flow cannot tell."""
    sites = context.program.roles.sites
    by_pragma = any(context.program.pragma(site.script, site.call, "train") for site in sites)
    return by_pragma and all(context.role(site)[0] != "none" for site in sites)


def _is_nothing(sink: Sink, origin: Origin) -> bool:
    """Whether the end of a walk is None for a dataset, or told by the rule about wrapper libraries."""
    return (origin.kind == "literal" and not sink.selectors) or wrappers.is_wrapper(origin.qualified)


def _end(origin: Origin) -> str:
    what = origin.reason
    if not what and origin.kind == "instance":
        what = f"an object of class {getattr(getattr(origin.node, 'name', None), 'value', '')}"
    elif not what:
        what = f"{origin.qualified} gives no MindSpore dataset" if origin.qualified else "that is no MindSpore dataset"
    return f"{origin.script.where(origin.node)}: {what}"


def _message(sink: Sink, origin: Origin, datasets: bool) -> str:
    root, _, rest = origin.qualified.partition(".")
    if rest and root != "mindspore" and "()" not in origin.qualified and not sink.selectors:
        return (
            f"the dataset of {sink.what} comes from {origin.qualified} "
            f"({origin.script.where(origin.node)}), which "
            "is not found from the folder of the script; convert the script in the place it is started from"
        )
    if not datasets:
        return (
            f"{sink.what} trains on rows that come from no MindSpore dataset ({_end(origin)}), so every rank "
            "would train on all of them; feed it from NumpySlicesDataset or GeneratorDataset"
        )
    return (
        f"the dataset of {sink.what} cannot be followed ({_end(origin)}); "
        "write '# ms-distify: train' or 'eval' on the lines of the constructors"
    )


def _without_data(context: Context) -> Iterator[Decision]:
    """Refuse trainings that no dataset feeds, or only datasets that a pragma leaves whole."""
    program = context.program
    if any(wrappers.is_wrapper(origin.qualified) for _, origin in program.roles.lost):
        return
    sinks = [(sink.script, sink.node) for sink in program.roles.sinks if sink.role == "train"]
    for script, node in [*program.steps, *sinks][:1]:
        message = "no MindSpore dataset that trains is seen to feed this, so nothing is dealt out over the ranks"
        yield decide(CODE, REFUSED, script, node, message)
