"""``**`` arguments of a dataset constructor.

They may already carry ``num_shards`` or a sampler, which must not stand there twice. A dictionary written out
in the program is looked at; anything else is refused.

Before (refused)::

    train = ds.MnistDataset(path, **options)
"""

from __future__ import annotations

from . import documented

# Decided together with MSD201, which looks at the constructor and carries the edits.
documented("MSD603", "** arguments of dataset constructors", __doc__)
