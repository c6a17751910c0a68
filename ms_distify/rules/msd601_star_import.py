"""Star imports of MindSpore hide what a name is.

After ``from mindspore.dataset import *`` nobody can tell from the file whether ``MnistDataset`` is
MindSpore's, so nothing that uses such names can be converted safely.

Before (refused)::

    from mindspore.dataset import *
"""

from __future__ import annotations

from collections.abc import Iterator

from ..model import Decision
from . import REFUSED, Context, decide, rule

CODE = "MSD601"


@rule(CODE, "star imports")
def check(context: Context) -> Iterator[Decision]:
    """Refuse star imports of MindSpore."""
    for script in context.program.scripts:
        for node, module in script.bindings.stars:
            if module.partition(".")[0] == "mindspore":
                message = f"'from {module} import *' hides what names mean; import them by name"
                yield decide(CODE, REFUSED, script, node, message)
