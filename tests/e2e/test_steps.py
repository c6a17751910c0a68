"""Hand-written training steps, of every form that public projects show, train the same model after the conversion.

Each file (or folder) in ``steps/`` is a whole training program, in its own words. All of them run one after the other in
one process (``steps/runner.py`` says how), compiled and op by op: on one card at twice the batch as they are, and on two
ranks as they come out of the conversion. On two ranks they run a second time with the edits that average the gradients
left out, which shows that the comparison can fail.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e
np = pytest.importorskip("numpy", reason="NumPy comes with MindSpore, which is not installed")

from harness import environment, ranks, run_python  # noqa: E402

from ms_distify import Conversion, convert  # noqa: E402
from ms_distify.launch import render  # noqa: E402

STEPS = Path(__file__).parent / "steps"
BATCH = 4
MODES = {"compiled": "0", "op by op": "1"}
# What averages its gradients already keeps doing so; all others are given reducers.
BY_ITSELF = "itself_"


def _programs() -> dict[str, Path]:
    """Return the file to start for each program, by name."""
    files = {file.stem: file for file in STEPS.glob("*.py") if file.name not in ("given.py", "runner.py")}
    files.update({file.parent.name: file for file in STEPS.glob("*/train.py")})
    return dict(sorted(files.items()))


PROGRAMS = _programs()
REDUCED = [name for name in PROGRAMS if not name.startswith(BY_ITSELF)]
# What MindSpore itself cannot do in one of the modes.
IMPOSSIBLE = {
    ("compiled", "fn_lambda"): "MindSpore compiles no lambda that stands inside a call",
    ("op by op", "fn_mint"): "on CPUs mint.optim.SGD changes no weight op by op (2.10)",
}
