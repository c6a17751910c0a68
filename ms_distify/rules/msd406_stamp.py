"""Names with the time in them that all ranks must know.

`time.strftime`, `datetime.now()`, `uuid4()`, `tempfile.mkdtemp()` give every rank another value: rank 0 writes its best
checkpoint into a folder that the other ranks do not find. Where one rank writes under such a name and all ranks read,
all take the value of rank 0. It goes through a file in the working folder, which the ranks must share (as for MSD404),
so no init is needed. A name under which rank 0 alone writes is left as it is. Where ranks may not all come to the line
that makes the name, it is refused.

Before::

    out = time.strftime("runs/%H%M%S")
    ms.save_checkpoint(net, f"{out}/best.ckpt")
    ms.load_checkpoint(f"{out}/best.ckpt", net)

After::

    out = same_on_all_ranks(time.strftime("runs/%H%M%S"))
    if rank_id in (None, 0):
        ms.save_checkpoint(net, f"{out}/best.ckpt")
    wait_for_rank_0("to write what ms.load_checkpoint(f'{out}/best.ckpt', net) reads")
    ms.load_checkpoint(f"{out}/best.ckpt", net)
"""

from __future__ import annotations

from collections.abc import Iterator

from ..model import Decision
from ..plan.files_edits import short
from . import CHANGED, KEPT, REFUSED, Context, decide, rule

CODE = "MSD406"


@rule(CODE, "one time for all ranks")
def check(context: Context) -> Iterator[Decision]:
    """Give all ranks the time of rank 0 where they read under a name that has it."""
    assert context.files is not None  # with it the times become known
    for stamp in context.stamps:
        what = short(stamp.script, stamp.call)
        if stamp.known:
            yield decide(CODE, KEPT, stamp.script, stamp.call, f"{what}: all ranks take rank 0's already")
        elif stamp.edits:
            message = f"{what}: all ranks take rank 0's, for they read under this name at {stamp.read}"
            yield decide(CODE, CHANGED, stamp.script, stamp.call, message, *stamp.edits)
        else:
            message = (
                f"{what} differs between ranks, and what rank 0 writes under this name is read by all at {stamp.read}; "
                "make the name at the start of the program, or take it from the command line"
            )
            yield decide(CODE, REFUSED, stamp.script, stamp.call, message)
