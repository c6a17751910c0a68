"""Starts the watching of a MindSpore program in the processes that ``ms-distify verify`` starts.

Python imports this module at start-up, since its folder is on PYTHONPATH. Nothing happens in processes that are not
to be watched. A module of this name that would have been imported otherwise is imported as well.
"""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _import_the_other() -> None:
    rest = [place for place in sys.path if os.path.abspath(place or os.getcwd()) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


_import_the_other()
if os.environ.get("MS_DISTIFY_WATCH") and os.environ.get("MS_ROLE") != "MS_SCHED":
    import ms_distify_watch

    ms_distify_watch.start(os.environ["MS_DISTIFY_WATCH"])
