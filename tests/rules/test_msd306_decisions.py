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


AVERAGED = "loss = sum_over_ranks(loss, mean=True)"


def averages(source: str) -> list[str]:
    """Return the lines that average something over the ranks, each with the line before it."""
    lines = converted(source).splitlines()
    return [f"{lines[i - 1].strip()} | {line.strip()}" for i, line in enumerate(lines) if "mean=True)" in line]


@pytest.mark.parametrize(
    ("step", "where"),
    [
        pytest.param("    if loss < 9:\n        opt(grads)\n", "grads = grad_reducer(grads)", id="loss"),
        pytest.param(
            "    if ops.isnan(loss):\n        continue\n    opt(grads)\n", "grads = grad_reducer(grads)", id="skip"
        ),
        pytest.param(
            "    bad = loss.asnumpy() > 9\n    if not bad:\n        opt(grads)\n",
            "grads = grad_reducer(grads)",
            id="through-a-name",
        ),
        pytest.param(
            "    opt(grads)\n    if loss < 0.1:\n        break\n", "grads = grad_reducer(grads)", id="early-stop"
        ),
        pytest.param(
            "    opt(grads)\n    if np.isnan(float(loss)):\n        sys.exit(0)\n",
            "grads = grad_reducer(grads)",
            id="exit-where-the-loss-is-not-a-number",
        ),
    ],
)
def test_decisions_on_the_own_loss_are_taken_on_its_mean(step: str, where: str) -> None:
    source = START.replace("from mindspore import ops", "from mindspore import ops; import sys; import numpy as np")
    assert averages(source + step) == [f"{where} | {AVERAGED}"]


@pytest.mark.parametrize(
    ("step", "line", "what"),
    [
        pytest.param("    if x.max() > 0:\n        opt(grads)\n", 12, "its own rows", id="rows"),
        pytest.param(
            "    if ops.isnan(loss).any():\n        continue\n    opt(grads)\n", 12, "more than one", id="a-loss-a-row"
        ),
        pytest.param("    if loss[0] > 9:\n        continue\n    opt(grads)\n", 12, "taken out", id="part-of-it"),
        pytest.param(
            "    opt(grads)\n    if (now := float(loss)) < 9:\n        break\n",
            13,
            "now: it is set in the middle of a line; write it on a line of its own",
            id="named-in-the-condition",
        ),
        pytest.param("    opt(grads)\n    if time.time() > 9:\n        break\n", 13, "time.time", id="time-limit"),
        pytest.param(
            "    opt(grads)\n    if get_rank() == 0:\n        seen = loss * 2\n    if seen > 9:\n        break\n",
            15,
            "some ranks only",
            id="set-on-one-rank",
        ),
        pytest.param(
            "    opt(grads)\n    if time.time() > 9:\n        seen = loss * 2\n        if seen > 9:\n            break\n",
            15,
            "a time of each rank's own",
            id="set-at-a-time-of-its-own",
        ),
    ],
)
def test_decisions_of_one_rank_are_refused(step: str, line: int, what: str) -> None:
    source = START.replace(
        "from mindspore import ops",
        "from mindspore import ops; import time\nfrom mindspore.communication import get_rank",
    )
    refused(source + step, "MSD306", line + 1, what)


def test_a_loop_until_the_own_loss_is_small_goes_on_until_the_mean_is() -> None:
    start = START[: START.index("for i")]
    loop = (
        "loss = 1\nwhile loss > 0.01:\n    for x, in train.create_tuple_iterator():\n"
        "        loss, grads = grad_fn(x)\n        opt(grads)\n"
    )
    assert averages(start + loop) == [f"grads = grad_reducer(grads) | {AVERAGED}"]


EPOCHS = """\
for epoch in range(9):
    total, steps = 0.0, 0
    for x, in train.create_tuple_iterator():
        loss, grads = grad_fn(x)
        opt(grads)
        total += float(loss)
        steps += 1
"""


@pytest.mark.parametrize(
    ("head", "end", "expected"),
    [
        pytest.param(
            "best, waited = 9.0, 0\n",
            "    mean = total / steps\n    if mean < best:\n        best, waited = mean, 0\n    else:\n"
            "        waited += 1\n    stop = waited > 2\n    if stop:\n        break\n",
            ["mean = total / steps | mean = sum_over_ranks(mean, mean=True)"],
            id="patience-in-a-name",
        ),
        pytest.param(
            "",
            "    if total < 0.1:\n        break\n",
            ["steps += 1 | total = sum_over_ranks(total, mean=True)"],
            id="the-sum-itself-behind-its-loop",
        ),
        pytest.param(
            "",
            "    last = loss\n    if last < 0.1:\n        break\n",
            ["last = loss | last = sum_over_ranks(last, mean=True)"],
            id="the-last-loss-once-an-epoch",
        ),
        pytest.param(
            "def done(value):\n    if value < 0.1:\n        return True\n    return False\n",
            "    mean = total / steps\n    if done(mean):\n        break\n",
            ["mean = total / steps | mean = sum_over_ranks(mean, mean=True)"],
            id="asked-of-a-function",
        ),
        pytest.param(
            "class Stop:\n    def __init__(self):\n        self.best, self.waited, self.stop = 9.0, 0, False\n"
            "    def __call__(self, value):\n        if value < self.best:\n            self.best = value\n"
            "        else:\n            self.waited += 1\n            if self.waited > 3:\n"
            "                self.stop = True\nstopper = Stop()\n",
            "    mean = total / steps\n    stopper(mean)\n    if stopper.stop:\n        break\n",
            ["mean = total / steps | mean = sum_over_ranks(mean, mean=True)"],
            id="counted-in-an-object",
        ),
    ],
)
def test_early_stops_on_the_training_loss(head: str, end: str, expected: list[str]) -> None:
    source = START[: START.index("for i")] + head + EPOCHS + end
    assert averages(source) == expected


def test_an_early_stop_that_only_counts_epochs_is_left() -> None:
    end = "    waited = epoch - 3\n    if waited > 2:\n        break\n"
    assert averages(START[: START.index("for i")] + EPOCHS + end) == []


def test_a_loss_that_a_compiled_function_decides_on_is_refused() -> None:
    step = (
        "@ms.jit\ndef step(x):\n    loss, grads = grad_fn(x)\n    if loss < 9:\n        opt(grads)\n    return loss\n"
        "for x, in train.create_tuple_iterator():\n    step(x)\n"
    )
    refused(START[: START.index("for i")] + step, "MSD306", 13, "compiled")


CALLBACK = """\
class Stop(ms.Callback):
    best, waited = 9.0, 0
    def epoch_end(self, run_context):
        parameters = run_context.original_args()
        LOSS
        if VALUE < self.best:
            self.best = VALUE
        else:
            self.waited += 1
            if self.waited > 3:
                run_context.request_stop()
ms.set_context(mode=0)
train = ds.MnistDataset('/d').batch(8, True)
net = nn.Dense(4, 2)
model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
model.train(9, train, callbacks=[Stop()])
"""


def test_a_callback_that_stops_on_the_training_loss() -> None:
    source = HEAD + CALLBACK.replace("LOSS", "loss = parameters.net_outputs.asnumpy()").replace("VALUE", "loss")
    assert averages(source) == ["loss = parameters.net_outputs.asnumpy() | loss = sum_over_ranks(loss, mean=True)"]
    hidden = HEAD + CALLBACK.replace("LOSS", "pass").replace("VALUE", "parameters.net_outputs")
    refused(hidden, "MSD306", 9, "a name of its own")


def test_a_callback_that_stops_on_its_epoch_is_left() -> None:
    source = HEAD + CALLBACK.replace("LOSS", "loss = parameters.cur_epoch_num").replace("VALUE", "loss")
    assert averages(source) == []


def test_stopping_on_whole_evaluation_data_is_converted() -> None:
    program = HEAD + (
        "ms.set_context(mode=0)\ntrain = ds.MnistDataset('/d').batch(8, True)\nval = ds.MnistDataset('/t').batch(8)\n"
        "net = nn.Dense(4, 2)\nmodel = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()), {'acc'})\n"
        "best = 0\nfor epoch in range(9):\n    model.train(1, train)\n    acc = model.eval(val)['acc']\n"
        "    if acc < best:\n        break\n    best = acc\n"
    )
    assert "num_shards=rank_size" in converted(program)


def test_a_learning_rate_that_drops_on_the_own_loss_drops_on_its_mean() -> None:
    program = START + ("    opt(grads)\n    plateau.step(loss)\n")
    program = program.replace(
        "grad_fn = ",
        "from mindspore.experimental.optim.lr_scheduler import ReduceLROnPlateau\n"
        "plateau = ReduceLROnPlateau(opt)\ngrad_fn = ",
    )
    assert "    plateau.step(sum_over_ranks(loss, mean=True))" in converted(program).splitlines()
    apart = program.replace("    plateau.step", "    if get_rank() == 0:\n        plateau.step")
    apart = apart.replace("import ops", "import ops\nfrom mindspore.communication import get_rank", 1)
    refused(apart, "MSD306", 17, "the rank decides")
