"""The file starts no training.

It does not use MindSpore, or only evaluates, or defines functions for others to call. It is left alone, and that is said.

Before and after (kept)::

    model.eval(test)
"""

from __future__ import annotations

from . import documented

# Decided by the pipeline (ms_distify/convert.py), which knows the whole program.
documented("MSD607", "files that start no training", __doc__)
