"""MSD106: nothing undoes the parallel context."""

from __future__ import annotations

import pytest
from support import CHANGED, HEAD, KEPT, TRAINING, changed_lines, converted, found, refused, run

DATA = 'train = ds.MnistDataset("/d").batch(8, drop_remainder=True)\n'
RESET = "ms.reset_auto_parallel_context()\n"
CONTEXT = "ms.set_context(mode=0)\n"
PARALLEL = (
    "ms.set_auto_parallel_context(parallel_mode='data_parallel', gradients_mean=True, parameter_broadcast=True)\n"
)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        pytest.param(HEAD + RESET + CONTEXT + DATA + TRAINING, 4, id="above the context"),
        pytest.param(HEAD + CONTEXT + RESET + DATA + TRAINING, 5, id="right below the context"),
        pytest.param(HEAD + RESET + DATA + TRAINING, 4, id="no context"),
        pytest.param(
            HEAD + "from mindspore.communication import init\ninit()\n" + RESET + DATA + TRAINING,
            6,
            id="behind init",
        ),
        pytest.param(
            HEAD + "from mindspore.communication import init\ninit()\n" + RESET + PARALLEL + DATA + TRAINING,
            6,
            id="between init and their own context",
        ),
        pytest.param(HEAD + CONTEXT + DATA + TRAINING + RESET, 9, id="after the last training"),
    ],
)
def test_kept(source: str, line: int) -> None:
    result = run(source)
    assert not result.refused, result.findings
    assert found(result, "MSD106") == [(KEPT, line)]
    output = result.output.decode()
    assert output.count("\n" + RESET) == 1
    parallel = output.index("set_auto_parallel_context(")
    reset = output.index("\n" + RESET)
    assert reset < parallel or reset > output.index("model.train(")


STEP = """\
net = nn.Dense(4, 2)
cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.1, 0.9))
ms.reset_auto_parallel_context()
cell.set_train()
for x, y in train.create_tuple_iterator():
    cell(x, y)
"""


def test_c08() -> None:
    source = HEAD + DATA + STEP
    gone, new = changed_lines(source)
    assert RESET.rstrip() in gone
    at = new.index("if rank_size is None:")
    assert new[at + 1] == "    " + RESET.rstrip()
    assert found(run(source), "MSD106") == [(CHANGED, 7)]


def test_behind_their_own_context() -> None:
    source = HEAD + "from mindspore.communication import init\ninit()\n" + PARALLEL + DATA + RESET + TRAINING
    assert "if rank_size is None:\n    ms.reset_auto_parallel_context()\n" in converted(source)


def test_in_a_function() -> None:
    build = "def build():\n    net = nn.Dense(4, 2)\n    ms.reset_auto_parallel_context()\n    return net\n"
    source = HEAD + build + CONTEXT + DATA + TRAINING.replace("nn.Dense(4, 2)", "build()")
    assert "    if rank_size is None:\n        ms.reset_auto_parallel_context()\n    return net\n" in converted(source)


@pytest.mark.parametrize(
    "reset",
    [
        pytest.param("if train: ms.reset_auto_parallel_context()", id="one-line if"),
        pytest.param("x = ms.reset_auto_parallel_context()", id="assignment"),
        pytest.param("ms.reset_auto_parallel_context(); epochs = 1", id="semicolons"),
    ],
)
def test_refused(reset: str) -> None:
    net, rest = TRAINING.split("\n", 1)
    refused(HEAD + CONTEXT + DATA + net + "\n" + reset + "\n" + rest, "MSD106", 7, "remove this call")
