"""MSD103: the parallel context."""

from __future__ import annotations

import pytest
from support import HEAD, KEPT, TRAINING, changed_lines, converted, found, refused, run

DATA = 'train = ds.MnistDataset("/d").batch(8, drop_remainder=True)\n'
INIT = HEAD + "from mindspore.communication import init\nms.set_context(mode=0)\ninit()\n"


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(
            'ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, parameter_broadcast=True)',
            id="complete",
        ),
        pytest.param(
            "ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True, "
            "device_num=ms.communication.get_group_size(), parameter_broadcast=True)",
            id="complete with device_num",
        ),
    ],
)
def test_complete_is_kept(call: str) -> None:
    result = run(INIT + call + "\n" + DATA + TRAINING)
    assert found(result, "MSD103") == [(KEPT, 7)]
    assert result.output.decode().count("set_auto_parallel_context") == 1
    assert call + "\n" in result.output.decode()


def test_settings_without_a_mode_are_kept_beside_ours() -> None:
    result = run(INIT + "ms.set_auto_parallel_context(enable_parallel_optimizer=False)\n" + DATA + TRAINING)
    assert (KEPT, 7) in found(result, "MSD103")
    assert "parallel_mode=ms.ParallelMode.DATA_PARALLEL" in result.output.decode()


@pytest.mark.parametrize(
    ("call", "after"),
    [
        pytest.param(
            "ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL)",
            "ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True, "
            "parameter_broadcast=True)",
            id="mode alone",
        ),
        pytest.param(
            'ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)',
            'ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, parameter_broadcast=True)',
            id="no broadcast",
        ),
        pytest.param(
            'ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, device_num=8)',
            'ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True, '
            "device_num=get_group_size(), parameter_broadcast=True)",
            id="fixed number of devices",
        ),
    ],
)
def test_completed(call: str, after: str) -> None:
    gone, new = changed_lines(INIT + call + "\n" + DATA + TRAINING)
    assert call in gone
    assert after in new
    assert sum("set_auto_parallel_context" in line for line in new) == 1


def test_mode_through_a_variable() -> None:
    choice = (
        "if ds:\n    mode = ms.ParallelMode.DATA_PARALLEL\nelse:\n    mode = ms.ParallelMode.STAND_ALONE\n"
        "ms.set_auto_parallel_context(parallel_mode=mode, gradients_mean=True)\n"
    )
    _, new = changed_lines(INIT + choice + DATA + TRAINING)
    assert "ms.set_auto_parallel_context(parallel_mode=mode, gradients_mean=True, parameter_broadcast=True)" in new


def test_spelled_as_the_user_spells_context() -> None:
    source = HEAD + "from mindspore import context\ncontext.set_context(mode=0)\n" + DATA + TRAINING
    output = converted(source)
    assert "    context.set_auto_parallel_context(parallel_mode=context.ParallelMode.DATA_PARALLEL, " in output


def test_after_init_in_the_same_branch_without_own_names() -> None:
    """The user's `size` still has its one-card value where the context goes in."""
    source = (
        HEAD + "from mindspore.communication import init, get_rank, get_group_size\nrank, size = 0, 1\n"
        "if ds:\n    init()\n    rank, size = get_rank(), get_group_size()\n" + DATA + TRAINING
    )
    _, new = changed_lines(source)
    assert "                                 parameter_broadcast=True, device_num=get_group_size())" in new


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param('parallel_mode="auto_parallel"', "auto_parallel", id="auto"),
        pytest.param("parallel_mode=ms.ParallelMode.SEMI_AUTO_PARALLEL", "semi_auto_parallel", id="semi-auto"),
        pytest.param('parallel_mode="hybrid_parallel"', "hybrid_parallel", id="hybrid"),
        pytest.param("parallel_mode=load()", "cannot be followed", id="unknown"),
        pytest.param("parallel_mode=ms.ParallelMode.STAND_ALONE", "undoes", id="stand-alone"),
        pytest.param('parallel_mode="data_parallel", gradients_mean=False', "sums", id="sum"),
        pytest.param('parallel_mode="data_parallel", **more', "write them out", id="stars"),
        pytest.param("gradients_mean=False", "sums", id="sum without a mode"),
        pytest.param("device_num=1", "fixed number", id="one device, later than ours"),
        pytest.param("**more", "write them out", id="stars without a mode"),
    ],
)
def test_refused(call: str, message: str) -> None:
    refused(INIT + f"ms.set_auto_parallel_context({call})\n" + DATA + TRAINING, "MSD103", 7, message)


FUNCTIONAL = """\
net = nn.Dense(4, 2)
loss = nn.MSELoss()
optimizer = nn.SGD(net.trainable_params(), 0.1)
grad_fn = ms.value_and_grad(lambda x, y: loss(net(x), y), None, optimizer.parameters)
for x, y in train.create_tuple_iterator():
    value, grads = grad_fn(x, y)
    optimizer(grads)
"""
DATA_LINE = 'train = ds.MnistDataset("/d")\n'


def test_no_broadcast_where_functions_take_gradients() -> None:
    """In graph mode each Cell compiled later would leave the function with old weights (measured)."""
    assert "parameter_broadcast" not in converted(HEAD + DATA_LINE + FUNCTIONAL)
    assert "parameter_broadcast=True" in converted(HEAD + DATA_LINE + TRAINING)


@pytest.mark.parametrize(
    ("mode", "status"),
    [
        pytest.param("ms.GRAPH_MODE", "refused", id="graph"),
        pytest.param("0", "refused", id="number"),
        pytest.param("ms.PYNATIVE_MODE", "noted", id="PyNative"),
    ],
)
def test_a_broadcast_of_the_users_where_functions_take_gradients(mode: str, status: str) -> None:
    start = (
        f"ms.set_context(mode={mode})\nms.communication.init()\n"
        "ms.set_auto_parallel_context(parallel_mode='data_parallel', parameter_broadcast=True)\n"
    )
    result = run(HEAD + start + DATA_LINE + FUNCTIONAL)
    assert (status, 6) in found(result, "MSD103"), result.findings
    if status == "noted":
        assert "parameter_broadcast=True, gradients_mean=True)" in result.output.decode()
    result = run(HEAD + start + DATA_LINE + TRAINING)
    assert not result.refused, "Model.train needs no functions"
