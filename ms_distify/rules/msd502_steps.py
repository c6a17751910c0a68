"""Literal step counts do not follow the shards.

With N ranks an epoch has a Nth of the steps. A schedule computed from ``get_dataset_size()`` follows by itself; one
written with literal numbers of steps runs N times too slowly. It is left as it is and noted.

Before and after (noted)::

    lr = nn.cosine_decay_lr(0.0, 0.1, total_step=18750, step_per_epoch=1875, decay_epoch=10)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import names
from ..model import Decision
from ..reading.bindings import dotted, literal
from ..reading.roles import argument
from ..reading.script import Script
from . import KEPT, NOTED, Context, decide, rule

CODE = "MSD502"
# Parameters that count steps, with their positions.
_STEPS: dict[str, tuple[tuple[str, int], ...]] = {
    "cosine_decay_lr": (("total_step", 2), ("step_per_epoch", 3)),
    "exponential_decay_lr": (("total_step", 2), ("step_per_epoch", 3)),
    "natural_exp_decay_lr": (("total_step", 2), ("step_per_epoch", 3)),
    "inverse_decay_lr": (("total_step", 2), ("step_per_epoch", 3)),
    "polynomial_decay_lr": (("total_step", 2), ("step_per_epoch", 3)),
    "warmup_lr": (("total_step", 1), ("step_per_epoch", 2)),
    "piecewise_constant_lr": (("milestone", 0),),
    "CosineDecayLR": (("decay_steps", 2),),
    "ExponentialDecayLR": (("decay_steps", 2),),
    "NaturalExpDecayLR": (("decay_steps", 2),),
    "InverseDecayLR": (("decay_steps", 2),),
    "PolynomialDecayLR": (("decay_steps", 2),),
    "WarmUpLR": (("warmup_steps", 1),),
    "CheckpointConfig": (("save_checkpoint_steps", 0),),
}


@rule(CODE, "literal step counts")
def check(context: Context) -> Iterator[Decision]:
    """Note literal numbers of steps in schedules."""
    flow = context.program.flow
    for script in context.program.scripts:
        for call in script.bindings.calls:
            qualified = flow.qualified(script, call)
            if qualified != names.CHECKPOINT_CONFIG and not names.is_lr_schedule(qualified):
                continue
            short = qualified.rpartition(".")[2]
            if short not in _STEPS:
                continue
            literal_steps = False
            for parameter, position in _STEPS[short]:
                value = argument(call, position, parameter)
                if value is not None and _fixed(context, script, value):
                    literal_steps = True
                    text = script.tree.text(value)
                    message = (
                        f"{short}: {parameter}={text} counts steps of one card; an epoch has 1/ranks of them now, "
                        f"so {text} / ranks would mean the same"
                    )
                    yield decide(CODE, NOTED, script, value, message)
            if not literal_steps:
                yield decide(
                    CODE, KEPT, script, call, f"{short} has no literal step count; it follows what it is given"
                )


def _fixed(context: Context, script: Script, node: cst.CSTNode, depth: int = 0) -> bool:
    """Whether a value is made of literals only."""
    if depth > 20:
        return False
    if isinstance(node, cst.BinaryOperation):
        return all(_fixed(context, script, side, depth + 1) for side in (node.left, node.right))
    if isinstance(node, (cst.List, cst.Tuple)):
        return all(_fixed(context, script, element.value, depth + 1) for element in node.elements)
    if literal(node) is not ...:
        return isinstance(literal(node), (int, float))
    if isinstance(node, cst.Call) and dotted(node.func) == "len":
        return True  # the number of all rows, whatever the shards
    if isinstance(node, cst.Name):
        found = context.program.flow.origins(script, node)
        return bool(found) and all(
            o.node is not node
            and not o.selectors
            and (o.kind == "literal" or isinstance(o.node, (cst.BinaryOperation, cst.Call)))
            and _fixed(context, o.script, o.node, depth + 1)
            for o in found
        )
    return False
