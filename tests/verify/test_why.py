"""What is said where nothing can be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ms_distify.exits import Stop
from ms_distify.settings import Settings
from ms_distify.verify.command import Wish, _Program
from ms_distify.verify.processes import Ended
from ms_distify.verify.records import Process
from ms_distify.verify.why import why_it_ended

START: dict[str, Any] = {"e": "start"}
OPTIMIZER: dict[str, Any] = {"e": "optimizer", "names": ["w"]}
READ: dict[str, Any] = {"e": "read", "i": 0, "k": 0, "rows": ["a"]}


@pytest.mark.parametrize(
    ("status", "events", "said"),
    [
        pytest.param(0, [START], "no optimizer of MindSpore was built", id="no optimizer"),
        pytest.param(0, [START, OPTIMIZER], "no batch was read", id="no data"),
        pytest.param(0, [START, OPTIMIZER, READ, READ], "2 batches were read, and no parameter", id="zero gradients"),
        pytest.param(None, [START, OPTIMIZER], "--timeout gives it more", id="too slow"),
        pytest.param(3, [START, OPTIMIZER], "ended with 3: the last words", id="another status"),
        pytest.param(0, [], "ended with 0: the last words", id="not a MindSpore program"),
        pytest.param(
            1,
            [START, {"e": "error", "type": "OSError", "text": "no x.bin", "at": "/w/train.py:3"}],
            "it: OSError: no x.bin (train.py:3)",
            id="an error",
        ),
    ],
)
def test_why(tmp_path: Path, status: int | None, events: list[dict[str, Any]], said: str) -> None:
    (tmp_path / "output.log").write_text("first\nthe last words\n\n")
    ended = Ended(status, tmp_path / "output.log", 7.0)
    assert said in why_it_ended(ended, "it", Process(tmp_path, "one", events))


def test_modules_that_lie_elsewhere_in_the_project_are_converted_too(tmp_path: Path) -> None:
    (tmp_path / "tool").mkdir()
    (tmp_path / "examples").mkdir()
    (tmp_path / "tool" / "data.py").write_text(
        "import mindspore.dataset as ds\n\n\n"
        "def rows(source):\n    return ds.NumpySlicesDataset(source, ['x', 'y']).batch(2)\n"
    )
    script = tmp_path / "examples" / "train.py"
    script.write_text(
        "import sys\nsys.path.append('..')\n"
        "from mindspore import Model, nn\nfrom tool.data import rows\n\n"
        "net = nn.Dense(2, 2)\n"
        "Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1)).train(1, rows(([[1.0, 2.0]] * 8, [[0.0, 1.0]] * 8)))\n"
    )
    program = _Program.read(Wish(script), Settings())
    assert program.root == tmp_path
    assert sorted(program.distributed) == [script, tmp_path / "tool" / "data.py"]


def test_a_program_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import mindspore as (\n")
    with pytest.raises(Stop, match=r"train\.py:1: MSD604"):
        _Program.read(Wish(tmp_path / "train.py"), Settings())
