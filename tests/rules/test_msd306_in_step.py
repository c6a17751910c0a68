"""MSD306: what decides, by way of objects, functions and callbacks, whether ranks do alike what they must do alike."""

from __future__ import annotations

import pytest
from support import HEAD, converted, found, refused, run

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


EPOCHS = (
    HEAD
    + """\
from mindspore import ops
import sys, time
ms.set_context(mode=0)
train = ds.NumpySlicesDataset([[1.0]]).batch(1, True)
val = ds.NumpySlicesDataset([[1.0]]).batch(1)
net = nn.Dense(1, 1)
opt = nn.SGD(net.trainable_params(), 0.1)
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), opt)
def epoch():
    return sum(float(step(x, x)) for x, in train.create_tuple_iterator())
def look():
    return sum(float(net(x)) for x, in val.create_tuple_iterator())
class Stopper:
    def __init__(self, patience):
        self.patience, self.best, self.bad, self.stop = patience, 1e9, 0, False
    def __call__(self, loss):
        if loss < self.best:
            self.best, self.bad = loss, 0
        else:
            self.bad += 1
            if self.bad >= self.patience:
                self.stop = True
    def asked(self, loss):
        self(loss)
        return self.bad >= self.patience
    @property
    def ended(self):
        return self.bad >= self.patience
def worse(seen):
    if len(seen) > 1 and seen[-1] > seen[-2]:
        return True
    return False
stopper = Stopper(2)
best, seen, twin = 1e9, [], nn.Dense(1, 1)
for i in range(9):
"""
)
BEGIN = EPOCHS.count("\n")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("    epoch()\n    stopper(look())\n    if stopper.stop:\n        break\n", id="flag-of-a-class"),
        pytest.param("    epoch()\n    if stopper.asked(look()):\n        break\n", id="method"),
        pytest.param("    epoch()\n    seen.append(look())\n    if worse(seen):\n        break\n", id="function"),
        pytest.param(
            "    epoch()\n    if look() > best:\n        opt.learning_rate.set_data(opt.learning_rate * 0.5)\n",
            id="learning-rate",
        ),
        pytest.param("    loss = epoch()\n    if loss > 9:\n        sys.exit(1)\n", id="failure-ends-all-ranks"),
        pytest.param("    loss = epoch()\n    if loss < best:\n        best = loss\n        print(best)\n", id="told"),
        pytest.param("    for j in range(train.get_dataset_size()):\n        epoch()\n", id="number-of-steps"),
        pytest.param(
            "    if epoch() < best:\n        ms.load_param_into_net(twin, net.parameters_dict())\n", id="weights-of-now"
        ),
        pytest.param(
            "    log = print if time.time() > 9 else None\n    if log is not None and i > 5:\n        break\n    epoch()\n",
            id="none-or-not",
        ),
    ],
)
def test_what_whole_evaluation_data_decides_is_converted(body: str) -> None:
    assert "num_shards=rank_size" in converted(EPOCHS + body)


@pytest.mark.parametrize(
    ("body", "line"),
    [
        pytest.param("    stopper(epoch())\n    if stopper.stop:\n        break\n", 2, id="flag-of-a-class"),
        pytest.param("    if stopper.asked(epoch()):\n        break\n", 1, id="method"),
        pytest.param("    stopper(epoch())\n    if stopper.ended:\n        break\n", 2, id="property"),
        pytest.param("    seen.append(epoch())\n    if worse(seen):\n        break\n", 2, id="function"),
        pytest.param("    if epoch() < 0.1:\n        sys.exit()\n", 1, id="end-of-the-program"),
        pytest.param(
            "    if epoch() > best:\n        ops.assign(opt.learning_rate, ms.Tensor(0.01))\n", 1, id="learning-rate"
        ),
        pytest.param("    if epoch() > best:\n        opt.lr = 0.01\n", 1, id="rate-as-an-attribute"),
        pytest.param(
            "    if epoch() > best:\n        opt = nn.SGD(net.trainable_params(), 0.01)\n", 1, id="new-optimizer"
        ),
        pytest.param("    if epoch() > best:\n        ms.load_checkpoint('b.ckpt', net)\n", 1, id="weights-put-back"),
        pytest.param("    if epoch() > best:\n        epoch()\n", 1, id="another-epoch"),
        pytest.param("    for j in range(2 if epoch() > 1 else 1):\n        epoch()\n", 1, id="rounds"),
        pytest.param(
            "    if i > 5:\n        pass\n    elif epoch() < 0.1:\n        break\n    epoch()\n", 3, id="elif"
        ),
    ],
)
def test_what_the_own_loss_decides_for_all_ranks_is_refused(body: str, line: int) -> None:
    refused(EPOCHS + body, "MSD306", BEGIN + line, "the loss of its own rows")


def test_a_number_of_rounds_follows_the_mean_loss() -> None:
    body = "    loss = epoch()\n    for j in range(2 if loss > 1 else 1):\n        epoch()\n"
    assert "    loss = epoch()\n    loss = sum_over_ranks(loss, mean=True)\n    for j in range(" in converted(
        EPOCHS + body
    )


RESTORED = """\
    loss = NUMBER
    if loss < best:
        best, file = loss, NAME
        ms.save_checkpoint(net, file)
def restore(name):
    ms.load_checkpoint(name, net)
restore(file)
"""


def test_a_checkpoint_chosen_by_whole_evaluation_data_is_loaded_as_before() -> None:
    body = "    epoch()\n" + RESTORED.replace("NUMBER", "look()").replace("NAME", "f'{i}_{loss:.3f}.ckpt'")
    assert found(run(EPOCHS + body), "MSD306") == []
    assert "num_shards=rank_size" in converted(EPOCHS + body)


@pytest.mark.parametrize(
    "name", [pytest.param("f'{i}.ckpt'", id="under-a-condition"), pytest.param("f'{loss:.3f}.ckpt'", id="in-the-name")]
)
def test_a_checkpoint_chosen_by_the_own_loss_is_chosen_by_its_mean(name: str) -> None:
    """Rank 0 alone writes checkpoints, by its choice: another rank would look for one that is not there."""
    body = RESTORED.replace("NUMBER", "epoch()").replace("NAME", name)
    assert "    loss = epoch()\n    loss = sum_over_ranks(loss, mean=True)\n    if loss < best:" in converted(
        EPOCHS + body
    )


def test_a_checkpoint_chosen_by_what_cannot_be_averaged_is_refused() -> None:
    body = "    if epoch() < best:\n        file = f'{i}.ckpt'\nms.load_checkpoint(file, net)\n"
    refused(EPOCHS + body, "MSD306", BEGIN + 3, "which checkpoint is loaded here depends on the loss of its own rows")


def test_rows_that_decide_whether_a_function_that_steps_is_called_are_refused() -> None:
    program = START[: START.index("for i")] + (
        "def update(x):\n    loss, grads = grad_fn(x)\n    opt(grads)\n"
        "for x, in train.create_tuple_iterator():\n    if x.mean() > 0:\n        update(x)\n"
    )
    refused(program, "MSD306", 14, "its own rows")


CALLBACK = (
    HEAD
    + """\
import time
ms.set_context(mode=0)
train = ds.MnistDataset('/d').batch(8, True)
val = ds.MnistDataset('/t').batch(8)
net = nn.SequentialCell(nn.Dense(4, 2)NORM)
model = ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()), metrics={'acc'})
class Stop(ms.Callback):
    def __init__(self):
        self.bad, self.start = 0, time.time()
    def epoch_end(self, run_context):
        told = run_context.original_args()
        STOP
            run_context.request_stop()
model.train(9, train, callbacks=[Stop()])
"""
)


@pytest.mark.parametrize(
    ("stop", "norm"),
    [
        pytest.param("if told.cur_epoch_num > 5:", ", nn.BatchNorm1d(2)", id="counter"),
        pytest.param("if model.eval(val)['acc'] > 0.9:", "", id="whole-evaluation-data"),
    ],
)
def test_callbacks_that_end_alike_are_converted(stop: str, norm: str) -> None:
    assert "num_shards=rank_size" in converted(CALLBACK.replace("STOP", stop).replace("NORM", norm))


@pytest.mark.parametrize(
    ("stop", "norm", "line", "what"),
    [
        pytest.param("if told.net_outputs.asnumpy() < 0.1:", "", 15, "the loss of its own rows", id="loss"),
        pytest.param("if time.time() - self.start > 60:", "", 15, "time.time", id="time"),
        pytest.param("if model.eval(val)['acc'] > 0.9:", ", nn.BatchNorm1d(2)", 15, "BatchNorm", id="own-statistics"),
    ],
)
def test_callbacks_that_one_rank_would_end_by_are_refused(stop: str, norm: str, line: int, what: str) -> None:
    refused(CALLBACK.replace("STOP", stop).replace("NORM", norm), "MSD306", line, what)
