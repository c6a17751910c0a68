"""A name that may or may not be a dataset class.

Where a called name can be several things (a class chosen at run time, ``getattr``), a dataset may be built
that nobody shards. Calls that can be a dataset class among others are refused.

Before (refused)::

    Data = ds.MnistDataset if mnist else load_images
    train = Data(path)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision
from ..reading.flow import OF_NOTHING, Origin
from . import REFUSED, Context, decide, rule

CODE = "MSD602"


@rule(CODE, "names that may be a dataset class")
def check(context: Context) -> Iterator[Decision]:
    """Refuse calls of which only some possibilities are dataset classes."""
    flow = context.program.flow
    for script in context.program.scripts:
        for call in script.bindings.calls:
            found = [origin for origin in flow.called(script, call) if not _is_none(origin)]
            classes = {name for o in found if o.kind == "external" and (name := names.dataset_class(o.qualified))}
            if classes and len({(o.kind, o.qualified, id(o.node) if o.kind != "external" else 0) for o in found}) > 1:
                choice = " or ".join(sorted(classes))
                message = f"this may build {choice} or something else; name the class in the call"
                yield decide(CODE, REFUSED, script, call, message)
            elif any(_chosen_at_run_time(context, origin) for origin in found):
                message = "getattr() chooses the dataset class at run time; name the class in the call"
                yield decide(CODE, REFUSED, script, call, message)


def _is_none(origin: Origin) -> bool:
    """``except ImportError: ds = None``: no other thing that could be called."""
    return origin.kind == "literal" or origin.reason.endswith(OF_NOTHING)


def _chosen_at_run_time(context: Context, origin: Origin) -> bool:
    """Whether something is taken out of mindspore.dataset by a name that is not known."""
    call = origin.node
    if origin.kind != "call" or origin.qualified != "getattr" or not isinstance(call, cst.Call) or not call.args:
        return False
    modules = context.program.flow.origins(origin.script, call.args[0].value, origin.calls)
    return any(module.qualified == names.DATASET for module in modules)
