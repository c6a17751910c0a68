"""Rank and size reach every training dataset.

Where the constructor stands in another function, rank and size are passed on as parameters from call to call.
Where the way is not closed (a function that nobody is seen to call, a call that hides its arguments), the
program is refused.

Before::

    def create(path):
        return ds.MnistDataset(path)

    model.train(1, create(path))

After::

    def create(path, num_shards=None, shard_id=None):
        return ds.MnistDataset(path, num_shards=num_shards, shard_id=shard_id)

    model.train(1, create(path, num_shards=rank_size, shard_id=rank_id))
"""

from __future__ import annotations

from . import documented

# Decided together with MSD201, which looks at the constructor and carries the edits.
documented("MSD211", "rank and size reach every training dataset", __doc__)
