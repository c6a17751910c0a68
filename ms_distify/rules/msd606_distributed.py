"""The program is distributed already.

init, a data-parallel context, a seed and shards on every training dataset are all there: nothing is changed. Where one of
them is missing, only that one is added.

Before and after (kept)::

    init()
    context.set_auto_parallel_context(parallel_mode=ParallelMode.DATA_PARALLEL, gradients_mean=True)
    set_seed(1)
    train = ds.Cifar10Dataset(path, num_shards=get_group_size(), shard_id=get_rank())
"""

from __future__ import annotations

from . import documented

# Decided by the pipeline (ms_distify/convert.py), which knows the whole program.
documented("MSD606", "programs that are distributed already", __doc__)
