"""Watches a MindSpore program from inside its process, without editing it.

It needs nothing but the standard library, NumPy and MindSpore, and runs on the program's own Python. What it sees goes
line by line into ``<name>.jsonl`` (name: the rank, or "one") in the folder of the run, so that it is there however the
process ends; arrays lie beside it.
"""

from __future__ import annotations

import json
import os
from typing import Any

from . import after, course, data, files, made_up, neutral, order
from .log import Log


def start(config_path: str) -> None:
    """Watch this process as a configuration says; do nothing in one that is not a rank of the run."""
    with open(config_path, encoding="utf-8") as file:
        config: dict[str, Any] = json.load(file)
    name = os.environ.get("RANK_ID", "") if config["ranks"] else "one"
    if not name:
        return  # msrun itself
    log = Log(config["record"], name)
    actions = after.Actions()
    watched = course.Course(config, log)
    files.watch(config, log)
    files.watch_libraries(actions)
    neutral.install(config, log, actions)
    made_up.install(config, log, actions)
    order.watch(log, actions)
    course.watch(watched, actions, config["divide"])
    data.watch(config, watched, actions)
    after.install(actions, log)
