'''Rank and size reach every training dataset.

Where the constructor stands in another function, rank and size are passed on as parameters from call to call. Where the
way is not closed (a function that nobody is seen to call, a call that hides its arguments), the program is refused.

Before::

    def create(path):
        return ds.MnistDataset(path)

    model.train(1, create(path))

After::

    def create(path, num_shards=None, shard_id=None):
        return ds.MnistDataset(path, num_shards=num_shards, shard_id=shard_id)

    model.train(1, create(path, num_shards=rank_size, shard_id=rank_id))
'''

from __future__ import annotations

from collections.abc import Iterator

from ..model import Decision
from . import Context, rule


@rule("MSD211", "rank and size reach every training dataset")
def check(context: Context) -> Iterator[Decision]:
    """Decided together with MSD201, which carries the edits and raises this code where the way ends."""
    del context
    yield from ()
