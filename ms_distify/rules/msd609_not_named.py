"""A file that needs changes was not named, or cannot be changed for all programs that use it.

Files that you did not name are never modified. Where the training dataset is built in another file, the message has the
command that names both. Programs that share a module are changed together; where two of them need it changed in ways
that do not go together, the later one is refused.

Before (refused)::

    ms-distify --in-place train.py

After::

    ms-distify --in-place train.py src/dataset.py
"""

from __future__ import annotations

from . import documented

# Decided by the pipeline (ms_distify/convert.py), which knows the whole program.
documented("MSD609", "files that were not named", __doc__)
