"""Libraries that wrap MindSpore's datasets and trainers.

Of mindcv it is known what its functions build: ``create_dataset`` takes ``num_shards`` and ``shard_id`` and hands them on
to MindSpore's class for the data (checked in 0.1.1 to 0.3.0), so MSD201 treats it as a dataset's constructor;
``create_loader`` batches what it is given; ``create_trainer`` gives a ``mindspore.Model``; ``create_optimizer`` an
optimizer. What goes wrong with them on several ranks is refused: ``download=True``, which every rank would do at once;
``clip_grad=True``, which clips each rank's gradients before they are averaged; a ``StateMonitor`` that is not told its
rank, and writes the same files on every rank.

mindnlp, mindformers, mindyolo and their like have loaders and trainers of their own. What comes out of them is not
followed, and for none of them it is known that N ranks do what one card does; a training that reads from one is refused.

Before::

    dataset = mindcv.data.create_dataset("mnist", path, split="train")
    loader = mindcv.data.create_loader(dataset, batch_size=32)
    model.train(1, loader)

After::

    dataset = mindcv.data.create_dataset("mnist", path, split="train", num_shards=rank_size, shard_id=rank_id)
    loader = mindcv.data.create_loader(dataset, batch_size=32)
    model.train(1, loader)
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..mindspore import wrappers
from ..model import Decision
from ..reading.roles import argument
from ..reading.script import Script
from . import REFUSED, Context, constructor_argument, decide, rule

CODE = "MSD605"
# In the release where it comes first, clip_grad is the eleventh argument.
_BEFORE_CLIP = 10


@rule(CODE, "wrapper libraries")
def check(context: Context) -> Iterator[Decision]:
    """Refuse trainings on datasets of a wrapper library, and what its functions do wrongly on several ranks."""
    for sink, origin in context.program.roles.lost:
        if sink.role == "train" and wrappers.is_wrapper(origin.qualified):
            message = f"{sink.what} trains through {origin.qualified}, which {wrappers.trouble(origin.qualified)}"
            yield decide(CODE, REFUSED, origin.script, origin.node, message)
    yield from _downloads(context)
    for script, call, _ in context.program.calls(wrappers.CREATE_TRAINER):
        if _may_clip(context, script, call):
            message = (
                "create_trainer with clip_grad clips the gradients of each rank before it averages them; clip in a "
                "train cell of your own, behind its grad_reducer"
            )
            yield decide(CODE, REFUSED, script, call, message)
    for script, call, _ in context.program.calls(wrappers.STATE_MONITOR):
        if not _told(context, script, call):
            message = (
                "StateMonitor writes checkpoints, result.log and summaries on every rank; give it rank_id, device_num "
                "and a summary_dir of the rank's own, or use ModelCheckpoint"
            )
            yield decide(CODE, REFUSED, script, call, message)


def _downloads(context: Context) -> Iterator[Decision]:
    for site in context.program.roles.sites:
        if site.name != wrappers.CREATE_DATASET:
            continue
        value = constructor_argument(site, "download")
        if value is not None and context.program.flow.constant(site.script, value) is not False:
            message = (
                f"download={site.script.tree.text(value)} lets every rank download at once, and each into a folder of its "
                "own where it trains; download before, and leave download out"
            )
            yield decide(CODE, REFUSED, site.script, site.call, message)


def _may_clip(context: Context, script: Script, call: cst.Call) -> bool:
    if any(arg.star for arg in call.args):
        return True
    if sum(arg.keyword is None for arg in call.args) > _BEFORE_CLIP:
        return True
    value = argument(call, None, "clip_grad")
    return value is not None and context.program.flow.constant(script, value) is not False


def _told(context: Context, script: Script, call: cst.Call) -> bool:
    """Whether a StateMonitor is told its rank and how many there are."""
    given = [argument(call, None, name) for name in ("rank_id", "device_num")]
    return all(value is not None and context.program.mentions_rank(script, value) for value in given)
