"""``--scale-lr linear`` multiplies the learning rate by the number of ranks.

N ranks at batch b take the steps of one card at batch N x b; many raise the learning rate with the batch. Nothing is
scaled unless it is asked for (``--scale-lr linear``, or ``scale_lr = "linear"`` in pyproject.toml). Then each learning rate is
multiplied where it is handed to an optimizer, whether it is a number, a table of steps or a schedule; the ``lr`` of groups of
parameters too. One card keeps its rate. With ``--warmup-epochs N`` the rate rises in a straight line from that of one card to
that of all ranks over the first N epochs of the dataset that trains, which must have a name where the optimizer is built. A rate
that the program multiplies by the number of ranks itself is left alone. A rate that is set again while the program trains is
refused: the scaled one would be lost.

Before::

    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)

After, with ``--scale-lr linear``::

    optimizer = nn.Momentum(net.trainable_params(), scale_learning_rate(0.1, rank_size), 0.9)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..model import AddKeywords, Decision, Edit, Need
from ..plan.helpers import calls_helper
from ..plan.rates import Handed, Rates
from ..reading.script import Script
from . import CHANGED, KEPT, NOTED, REFUSED, Context, decide, rule

CODE = "MSD506"
_ASKED = "--scale-lr linear"


@rule(CODE, "the learning rate")
def check(context: Context) -> Iterator[Decision]:
    """Scale the learning rates, if that is asked for."""
    asked = context.settings.scale_lr == "linear"
    rates = Rates(context.program)
    handed = list(rates.handed())
    changes = False
    for one in handed:
        if one.value is not None and _scaled(context, one.script, one.value):
            if asked and not _surely_scaled(context, one.script, one.value):
                message = (
                    f"{_ASKED}: something that this rate is computed from is multiplied by the number of ranks, the rate or "
                    "a count of steps; scale it yourself, without this option"
                )
                yield decide(CODE, REFUSED, one.script, one.value, message)
            else:
                yield _kept(context, one, one.value)
        elif asked:
            changes = True
            yield _scale(context, rates, one)
    if not asked:
        return
    if not handed:
        entry = context.program.entry
        message = f"{_ASKED}: no optimizer of MindSpore's is found whose learning rate could be scaled"
        yield decide(CODE, REFUSED, entry, entry.tree.module, message)
    for script, node in rates.set_later() if changes else ():
        message = (
            f"{_ASKED}: this sets the learning rate anew while the program trains, and would undo the scaling; multiply the "
            "value here by get_group_size() yourself"
        )
        yield decide(CODE, REFUSED, script, node, message)


def _ours(script: Script, value: cst.BaseExpression) -> bool:
    return any(calls_helper(kind, script, value) for kind in ("rate", "warmup"))


def _scaled(context: Context, script: Script, value: cst.BaseExpression) -> bool:
    return _ours(script, value) or context.batches.numbers.multiplied(script, value)


def _surely_scaled(context: Context, script: Script, value: cst.BaseExpression) -> bool:
    return _ours(script, value) or context.batches.numbers.surely_multiplied(script, value)


def _kept(context: Context, one: Handed, value: cst.BaseExpression) -> Decision:
    if context.keeps_batch:
        message = (
            "the learning rate is multiplied by the number of ranks, though all ranks together take one card's batch"
        )
        return decide(CODE, NOTED, one.script, value, message)
    return decide(CODE, KEPT, one.script, value, "the learning rate is multiplied by the number of ranks already")


def _scale(context: Context, rates: Rates, one: Handed) -> Decision:
    script, node = one.script, one.value or one.call
    trouble = one.trouble
    if context.batches.all_divided:
        trouble = "the batch size is divided by the number of ranks, so there is nothing to scale for"
    epochs = context.settings.warmup_epochs
    dataset = ""
    if epochs and not trouble:
        dataset = rates.dataset_at(script, node)
        trouble = _no_warmup(context, one, dataset)
    if trouble:
        return decide(CODE, REFUSED, script, node, f"{_ASKED}: {trouble}")
    size, needs = _size(context, script, node)
    kind, more = ("warmup", (size, dataset, str(epochs))) if epochs else ("rate", (size,))
    edits: list[Edit]
    if one.value is None:
        text, define = context.helpers.call(kind, script, str(one.rate.default), *more)
        assert isinstance(one.call, cst.Call)
        edits = [*define, AddKeywords(script, one.call, ((one.rate.parameter, text),), needs)]
        what = f"the default {one.rate.default} is"
    else:
        edits = context.helpers.apply(kind, script, one.value, *more, needs=needs)
        what = "is"
    rise = f", rising over the first {epochs} epochs of {dataset}" if epochs else ""
    message = f"the learning rate {what} multiplied by the number of ranks{rise}; one card keeps its own"
    return decide(CODE, CHANGED, script, node, message, *edits)


def _size(context: Context, script: Script, node: cst.CSTNode) -> tuple[str, tuple[Need, ...]]:
    """Return the number of ranks at a place (None or 1 on one card), and the imports it takes."""
    if context.startup.visible(script, node):
        return context.startup.rank_names.size, ()
    os_name, needs = context.startup.speller(script).spell("os", node)
    return f'int({os_name}.getenv("RANK_SIZE", "1"))', needs


def _no_warmup(context: Context, one: Handed, dataset: str) -> str:
    """Return why a rate cannot rise over epochs, or nothing."""
    if not one.rate.schedules:
        return "--warmup-epochs: this optimizer takes no schedule; write the warm-up by hand"
    uses = [use for site in context.program.roles.sites for use in site.uses_as("train")]
    where = uses[0].script.where(uses[0].node) if uses else "nowhere"
    if not dataset:
        return (
            f"--warmup-epochs: the dataset that trains at {where} has no name here, so the steps of an epoch cannot be asked "
            "for; build the optimizer behind it"
        )
    for use in uses:
        for script, step in use.methods:
            func = step.func if isinstance(step, cst.Call) else None
            if isinstance(func, cst.Attribute) and func.attr.value == "repeat":
                return f"--warmup-epochs: the dataset is repeated ({script.where(step)}), so its size is not that of an epoch"
    return ""
