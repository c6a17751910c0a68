"""A file that cannot be read as Python.

Python 2, notebooks and their commands, wrong encodings and expressions nested deeper than Python itself allows are
named with their line; exit code 2. Nothing is written.

Before (unreadable)::

    print "epoch", epoch
"""

from __future__ import annotations

from . import documented

# Decided by the pipeline (ms_distify/convert.py), which knows the whole program.
documented("MSD604", "files that cannot be read as Python", __doc__)
