"""What watches a program, without MindSpore."""

from __future__ import annotations

import importlib.util
import json
import os
import sys

import pytest

from ms_distify.verify.processes import WATCH

SPEC = importlib.util.spec_from_file_location("watch_log", WATCH / "ms_distify_watch" / "log.py")
assert SPEC is not None
assert SPEC.loader is not None
log = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(log)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        pytest.param("/home/me/train.py", True, id="program"),
        pytest.param(json.__file__, False, id="Python's own library"),
        pytest.param(pytest.__file__, False, id="installed"),
        pytest.param(str(WATCH / "ms_distify_watch" / "course.py"), False, id="what watches"),
        pytest.param("<frozen importlib._bootstrap>", False, id="no file"),
        pytest.param(os.path.join(sys.prefix, "src", "train.py"), True, id="beside an environment"),
    ],
)
def test_whose_a_file_is(file: str, expected: bool) -> None:
    assert log.is_of_program(file) is expected
