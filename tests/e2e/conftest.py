"""Which devices the end-to-end tests can use here."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess

import pytest


def npu_answers() -> bool:
    tool = shutil.which("npu-smi")
    return tool is not None and subprocess.run([tool, "info"], capture_output=True).returncode == 0


@pytest.fixture(
    params=[pytest.param("CPU"), pytest.param("Ascend", marks=pytest.mark.ascend)],
    scope="session",
)
def device(request: pytest.FixtureRequest) -> str:
    """The device target to train on; Ascend only where there is one."""
    if importlib.util.find_spec("mindspore") is None:
        pytest.skip("MindSpore is not installed: pip install 'ms-distify[cpu]'")
    if request.param == "Ascend" and not npu_answers():
        pytest.skip("no Ascend accelerator here: npu-smi does not answer")
    target: str = request.param
    return target
