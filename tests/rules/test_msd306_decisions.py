import pytest
from support import HEAD, converted, refused

START = (
    HEAD
    + """\
from mindspore import ops
ms.set_context(mode=0)
train = ds.NumpySlicesDataset([[1.0]]).batch(1, True)
net = nn.Dense(1, 1)
opt = nn.SGD(net.trainable_params(), 0.1)
grad_fn = ms.value_and_grad(net, None, opt.parameters)
for i, (x,) in enumerate(train.create_tuple_iterator()):
    loss, grads = grad_fn(x)
"""
)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("    if (i + 1) % 4 == 0:\n        opt(grads)\n", id="step-counter"),
        pytest.param("    if ms.amp.all_finite(grads):\n        opt(grads)\n", id="the-gradients"),
        pytest.param(
            "    grads = ops.clip_by_norm(grads)\n    if grads[0].max() > 9:\n        continue\n    opt(grads)\n",
            id="later",
        ),
        pytest.param("    if i > 10:\n        break\n    opt(grads)\n", id="break-on-a-counter"),
        pytest.param("    opt(grads)\n    if loss > 9:\n        print('high')\n", id="behind-the-application"),
    ],
)
def test_decisions_that_are_alike_are_converted(step: str) -> None:
    assert "grads = grad_reducer(grads)" in converted(START + step)


@pytest.mark.parametrize(
    ("step", "line", "what"),
    [
        pytest.param("    if loss < 9:\n        opt(grads)\n", 12, "the loss", id="loss"),
        pytest.param("    if ops.isnan(loss).any():\n        continue\n    opt(grads)\n", 12, "the loss", id="skip"),
        pytest.param(
            "    bad = loss.asnumpy() > 9\n    if not bad:\n        opt(grads)\n", 13, "the loss", id="through-a-name"
        ),
        pytest.param("    if x.max() > 0:\n        opt(grads)\n", 12, "its own rows", id="rows"),
    ],
)
def test_decisions_of_one_rank_are_refused(step: str, line: int, what: str) -> None:
    refused(START + step, "MSD306", line, what)


@pytest.mark.parametrize(
    ("step", "line", "what"),
    [
        pytest.param("    opt(grads)\n    if loss < 0.1:\n        break\n", 13, "the loss", id="early-stop"),
        pytest.param("    opt(grads)\n    if time.time() > 9:\n        break\n", 13, "time.time", id="time-limit"),
    ],
)
def test_loops_that_one_rank_would_leave_are_refused(step: str, line: int, what: str) -> None:
    refused(
        START.replace("from mindspore import ops", "from mindspore import ops; import time") + step,
        "MSD306",
        line,
        what,
    )


def test_a_loop_until_the_own_loss_is_small_is_refused() -> None:
    start = START[: START.index("for i")]
    loop = (
        "loss = 1\nwhile loss > 0.01:\n    for x, in train.create_tuple_iterator():\n"
        "        loss, grads = grad_fn(x)\n        opt(grads)\n"
    )
    refused(start + loop, "MSD306", 11, "the loss")


def test_stopping_on_whole_evaluation_data_is_converted() -> None:
    program = HEAD + (
        "ms.set_context(mode=0)\ntrain = ds.MnistDataset('/d').batch(8, True)\nval = ds.MnistDataset('/t').batch(8)\n"
        "net = nn.Dense(4, 2)\nmodel = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()), {'acc'})\n"
        "best = 0\nfor epoch in range(9):\n    model.train(1, train)\n    acc = model.eval(val)['acc']\n"
        "    if acc < best:\n        break\n    best = acc\n"
    )
    assert "num_shards=rank_size" in converted(program)


def test_a_learning_rate_that_drops_on_the_own_loss_is_refused() -> None:
    program = START + ("    opt(grads)\n    plateau.step(loss)\n")
    program = program.replace(
        "grad_fn = ",
        "from mindspore.experimental.optim.lr_scheduler import ReduceLROnPlateau\n"
        "plateau = ReduceLROnPlateau(opt)\ngrad_fn = ",
    )
    refused(program, "MSD306", 15, "learning rate")
