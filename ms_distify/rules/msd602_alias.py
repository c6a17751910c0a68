'''A name that may or may not be a dataset class.

Where a called name can be several things (a class chosen at run time, ``getattr``), a dataset may be built that nobody
shards. Calls that can be a dataset class among others are refused.

Before (refused)::

    Data = ds.MnistDataset if mnist else load_images
    train = Data(path)
'''

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision
from ..reading.bindings import dotted
from . import REFUSED, Context, decide, rule

CODE = "MSD602"


@rule(CODE, "names that may be a dataset class")
def check(context: Context) -> Iterator[Decision]:
    """Refuse calls of which only some possibilities are dataset classes."""
    flow = context.program.flow
    for script in context.program.scripts:
        for call in script.bindings.calls:
            found = flow.called(script, call)
            classes = {name for origin in found if (name := names.dataset_class(origin.qualified)) and origin.kind == "external"}
            if classes and len({(o.kind, o.qualified, id(o.node) if o.kind != "external" else 0) for o in found}) > 1:
                message = f"this may build {' or '.join(sorted(classes))} or something else; name the class in the call"
                yield decide(CODE, REFUSED, script, call, message)
            elif isinstance(call.func, cst.Call) and dotted(call.func.func) == "getattr" and call.func.args:
                for origin in flow.origins(script, call.func.args[0].value):
                    if origin.qualified == "mindspore.dataset":
                        message = "getattr() chooses the dataset class at run time; name the class in the call"
                        yield decide(CODE, REFUSED, script, call, message)
