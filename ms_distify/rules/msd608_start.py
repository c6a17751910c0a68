"""The file trains, but how its start leads to the training cannot be followed.

The start-up must stand on the way to every training. Where a framework calls the training through a name, a decorator or
a registry, that way is not seen.

Before (refused)::

    if __name__ == "__main__":
        registry["train"]()
"""

from __future__ import annotations

from . import documented

# Decided by the pipeline (ms_distify/convert.py), which knows the whole program.
documented("MSD608", "a start that cannot be followed", __doc__)
