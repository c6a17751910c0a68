"""The global batch grows with the ranks, unless ``--global-batch keep`` divides it.

N ranks at batch b take the steps that one card takes at batch N x b (FACTS 2). Batch size and learning rate are left as
they are; the new global batch is noted once for each training. With ``--global-batch keep`` (or ``global_batch = "keep"``
in pyproject.toml), the batch size of each training dataset is divided by the number of ranks when the program runs: it
ends with an error where that leaves a remainder. The last ``batch`` on a dataset's way is divided; evaluation keeps its
own, also where one function builds both. An epoch has the steps it has on one card then (one more where padding of the
shards fills a last batch). What else reads the batch size is named by line: a count of steps computed from it stays right,
a Cell built with it is refused. A size that is divided by the number of ranks already is left alone.

Before::

    train = train.batch(32, drop_remainder=True)

After, with ``--global-batch keep``::

    train = train.batch(batch_per_rank(32, rank_size), drop_remainder=True)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..model import Decision
from ..plan.batches import Batch
from ..plan.shards import CannotReachError
from . import CHANGED, KEPT, NOTED, REFUSED, Context, constructor_argument, decide, rule

CODE = "MSD501"
_ASKED = "--global-batch keep"


@rule(CODE, "the global batch")
def check(context: Context) -> Iterator[Decision]:
    """Note the batch size of every training, or divide it."""
    keep = context.settings.global_batch == "keep"
    for batch in context.batches.formed.values():
        if context.batches.divided(batch):
            message = (
                "the batch size is divided by the number of ranks already: all ranks together take one card's batch"
            )
            yield decide(CODE, KEPT, batch.script, batch.call, message)
        elif keep:
            yield from _divide(context, batch)
        elif batch.size is not None:
            rest = "batch size is" if context.settings.scale_lr != "none" else "batch size and learning rate are"
            message = f"global batch is {_number(context, batch)} x ranks now; {rest} left as they are"
            message = message.replace("size is left as they are", "size is left as it is")
            yield decide(CODE, NOTED, batch.script, batch.call, message)
    if keep:
        for site, use in context.batches.missing:
            message = (
                f"{_ASKED}: no batch() is found between {site.name} and {use.how} whose size could be divided; form the "
                "batches with batch()"
            )
            yield decide(CODE, REFUSED, site.script, site.call, message)


def _number(context: Context, batch: Batch) -> str:
    assert batch.size is not None
    number = context.program.flow.constant(batch.script, batch.size, batch.ways[0])
    return str(number) if isinstance(number, int) else batch.script.tree.text(batch.size)


def _divide(context: Context, batch: Batch) -> Iterator[Decision]:
    script, call, size = batch.script, batch.call, batch.size
    trouble = ""
    if size is None:
        trouble = "its batch size comes from * or ** arguments; write it out"
    elif call in context.batches.inner:
        trouble = "what it gives is batched again for one training and not for another; batch each by a call of its own"
    elif context.batches.callable_size(batch):
        trouble = "its batch size is a function; divide what that returns by the number of ranks"
    if trouble or size is None:
        yield decide(CODE, REFUSED, script, call, f"{_ASKED}: {trouble}")
        return
    supplied = _in_function(context, batch)
    edits = []
    if not supplied:
        try:
            supply = context.shards.supply_step(script, call, batch.ways, _given(context, batch))
        except CannotReachError as reason:
            yield decide(CODE, REFUSED, script, call, f"{_ASKED}: {reason}")
            return
        supplied, edits = supply.size, supply.edits
    edits = [*context.helpers.apply("batch", script, size, supplied), *edits]
    text = _number(context, batch)
    message = (
        f"a rank takes {text} / ranks rows a step, all ranks together {text}, as one card does{_example(context, text)}"
    )
    yield decide(CODE, CHANGED, script, call, message, *edits)
    yield from _readers(context, batch)


def _example(context: Context, text: str) -> str:
    """Return what a known size comes to on the ranks that the launcher starts."""
    ranks = context.settings.ranks
    if not text.isdigit() or ranks == 1:
        return ""
    if int(text) % ranks:
        return f" (it cannot be divided among {ranks} ranks: start others with -n)"
    return f" (on {ranks} ranks {int(text) // ranks})"


def _readers(context: Context, batch: Batch) -> Iterator[Decision]:
    """Name what else reads a size that is divided."""
    for script, node in context.batches.readers(batch):
        text = script.tree.text(node)
        if context.batches.builds_cell(script, node):
            message = (
                f"{_ASKED}: a Cell is built with {text}, and gets fewer rows than that on a rank; build it without, or divide "
                "it there too"
            )
            yield decide(CODE, REFUSED, script, node, message)
        else:
            message = (
                f"{text} is read here too: it is the batch of all ranks together, right for a count of steps; a rank has "
                f"{text} / ranks rows"
            )
            yield decide(CODE, NOTED, script, node, message)
    for script, node, name in context.batches.same_numbers(batch):
        message = (
            f"{_ASKED}: a Cell is built with {name}={script.tree.text(node)}, the batch by its name, and gets fewer rows than "
            "that on a rank; build it without, or divide it there too"
        )
        yield decide(CODE, REFUSED, script, node, message)


def _given(context: Context, batch: Batch) -> tuple[cst.BaseExpression | None, cst.BaseExpression | None]:
    """Return what a constructor in the same function passes for size and rank."""
    here = batch.script.bindings.scope_of(batch.call).function()
    for site in context.program.roles.sites:
        if site.script is batch.script and site.script.bindings.scope_of(site.call).function() is here:
            size = constructor_argument(site, "num_shards")
            if size is not None:
                return size, constructor_argument(site, "shard_id")
    return None, None


def _in_function(context: Context, batch: Batch) -> str:
    """Return the user's own expression for the number of ranks, where a constructor beside it is dealt by it."""
    size = _given(context, batch)[0]
    if size is None or any(step is batch.call for step in _evaluated(context)):
        return ""
    if not context.batches.numbers.is_count(batch.script, size):
        return ""
    if isinstance(size, cst.Call) and not size.args:
        return batch.script.tree.text(size)
    if not isinstance(size, cst.Name):
        return ""
    start = batch.script.tree.start(batch.call)
    return size.value if all(binding.at < start for binding in batch.script.bindings.lookup(size)) else ""


def _evaluated(context: Context) -> Iterator[cst.CSTNode]:
    """Yield the dataset methods on the way to something other than a training."""
    for site in context.program.roles.sites:
        for use in site.uses:
            if use.role != "train":
                yield from (node for _, node in use.methods)
