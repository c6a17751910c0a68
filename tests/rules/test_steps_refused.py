"""Hand-written steps out of public projects, in other words, that must be refused: a conversion would train otherwise."""

import pytest
from support import HEAD, converted, refused

START = (
    HEAD
    + """\
from mindspore import ops
ms.set_context(mode=ms.PYNATIVE_MODE)
train = ds.NumpySlicesDataset({"x": [[1.0]], "y": [[1.0]]}).batch(1, True)
net = nn.Dense(1, 1)
loss_fn = nn.MSELoss()
opt = nn.SGD(net.trainable_params(), 0.1)
def forward(x, y):
    return loss_fn(net(x), y)
grad_fn = ms.value_and_grad(forward, None, opt.parameters)
"""
)
LINES = START.count("\n")
LOOP = "for x, y in train.create_tuple_iterator():\n"


@pytest.mark.parametrize(
    ("code", "line", "message", "step"),
    [
        pytest.param(
            "MSD302",
            2,
            "by hand",
            LOOP + "    _, first = grad_fn(x, y)\n"
            "    for p, g in zip(net.trainable_params(), first):\n        ops.assign_add(p, 0.05 * g)\n"
            "    _, second = ms.value_and_grad(forward, None, opt.parameters)(x, y)\n"
            "    for p, g in zip(net.trainable_params(), first):\n        ops.assign_sub(p, 0.05 * g)\n"
            "    opt(second)\n",
            id="sharpness-aware-weights-moved-by-a-gradient-of-one-rank",
        ),
        pytest.param(
            "MSD302",
            4,
            "by hand",
            "inner = ms.grad(forward, None, net.trainable_params())\nouter = ms.value_and_grad(forward, None, opt.parameters)\n"
            + LOOP
            + "    fast = inner(x, y)\n"
            "    for p, g in zip(net.trainable_params(), fast):\n        ops.assign_sub(p, 0.1 * g)\n"
            "    loss, grads = outer(x, y)\n    opt(grads)\n",
            id="meta-learning-inner-step-by-hand",
        ),
        pytest.param(
            "MSD306",
            3,
            "the loss",
            LOOP + "    loss, grads = grad_fn(x, y)\n    if ops.isfinite(loss):\n        opt(grads)\n",
            id="step-skipped-where-the-own-loss-is-not-finite",
        ),
        pytest.param(
            "MSD306",
            5,
            "the loss",
            "last = 9.0\n"
            + LOOP
            + "    loss, grads = grad_fn(x, y)\n    opt(grads)\n    if abs(float(loss) - last) < 1e-6:\n"
            "        break\n    last = float(loss)\n",
            id="ended-when-the-own-loss-stands-still",
        ),
    ],
)
def test_steps_that_would_train_otherwise_are_refused(code: str, line: int, message: str, step: str) -> None:
    refused(START + step, code, LINES + line, message)


def test_a_reducer_under_a_flag_that_is_off_by_default_is_refused() -> None:
    """On many ranks the flag stays off: nothing would be averaged."""
    step = """\
class Step(nn.Cell):
    def __init__(self, network, optimizer, reduce_flag=False, mean=True, degree=None):
        super().__init__(auto_prefix=False)
        self.network = network
        self.weights = ms.ParameterTuple(network.trainable_params())
        self.optimizer = optimizer
        self.grad = ops.GradOperation(get_by_list=True)
        self.reducer_flag = reduce_flag
        if self.reducer_flag:
            self.grad_reducer = nn.DistributedGradReducer(optimizer.parameters, mean, degree)
    def construct(self, x, y):
        weights = self.weights
        loss = self.network(x, y)
        grads = self.grad(self.network, weights)(x, y)
        if self.reducer_flag:
            grads = self.grad_reducer(grads)
        self.optimizer(grads)
        return loss
step = Step(nn.WithLossCell(net, loss_fn), opt)
"""
    refused(START + step + LOOP + "    step(x, y)\n", "MSD302", LINES + 14, "reducer_flag")


def averaged_first(program: str, clip: str) -> None:
    """Assert that the line with the program's own reducer, the only one, moves up in front of a clip."""
    lines = [line.strip() for line in converted(program).splitlines()]
    reducer = lines.index("grads = self.grad_reducer(grads)")
    assert clip in lines[reducer + 1]
    assert lines.count("grads = self.grad_reducer(grads)") == 1


def test_a_reducer_behind_a_clip_in_a_cell_moves_in_front_of_it() -> None:
    """Each rank would clip by its own norm; one card clips by that of all rows."""
    step = """\
class Step(nn.TrainOneStepCell):
    def construct(self, x, y):
        loss = self.network(x, y)
        grads = self.grad(self.network, self.weights)(x, y, self.sens)
        grads = ops.clip_by_global_norm(grads, 1.0)
        grads = self.grad_reducer(grads)
        return ops.depend(loss, self.optimizer(grads))
step = Step(nn.WithLossCell(net, loss_fn), opt)
"""
    averaged_first(START + step + LOOP + "    step(x, y)\n", "clip_by_global_norm(grads")


def test_a_reducer_behind_a_clip_through_hyper_map_moves_in_front_of_it() -> None:
    """The name of what HyperMap applies says that it clips, not the name of the call."""
    step = """\
clip_grad = ops.MultitypeFuncGraph("clip_grad")
@clip_grad.register("Number", "Tensor")
def _clip_grad(limit, grad):
    return ops.clip_by_value(grad, -limit, limit)
class Step(nn.TrainOneStepCell):
    def __init__(self, network, optimizer):
        super().__init__(network, optimizer)
        self.hyper_map = ops.HyperMap()
    def construct(self, x, y):
        loss = self.network(x, y)
        grads = self.grad(self.network, self.weights)(x, y, self.sens)
        grads = self.hyper_map(ops.partial(clip_grad, 1.0), grads)
        grads = self.grad_reducer(grads)
        return ops.depend(loss, self.optimizer(grads))
step = Step(nn.WithLossCell(net, loss_fn), opt)
"""
    averaged_first(START + step + LOOP + "    step(x, y)\n", "self.hyper_map(ops.partial(clip_grad")


def test_averaging_by_hand_with_the_number_of_ranks_written_down_is_refused() -> None:
    step = """\
class Step(nn.TrainOneStepCell):
    def __init__(self, network, optimizer):
        super().__init__(network, optimizer)
        self.all_reduce = ops.AllReduce()
    def construct(self, x, y):
        loss = self.network(x, y)
        grads = self.grad(self.network, self.weights)(x, y, self.sens)
        grads = tuple(self.all_reduce(g) / 8 for g in grads)
        return ops.depend(loss, self.optimizer(grads))
step = Step(nn.WithLossCell(net, loss_fn), opt)
"""
    refused(START + step + LOOP + "    step(x, y)\n", "MSD302", LINES + 7, "AllReduce")


def test_an_optimizer_that_is_not_linear_in_its_gradients_is_refused() -> None:
    """A class over a MindSpore optimizer that keeps the largest entries only: what it does to averages is not known."""
    step = """\
class TopSGD(nn.SGD):
    def construct(self, gradients):
        return super().construct(tuple(g * (ops.abs(g) > 0.1) for g in gradients))
other = TopSGD(net.trainable_params(), 0.1)
"""
    refused(START + step + LOOP + "    loss, grads = grad_fn(x, y)\n    other(grads)\n", "MSD303", LINES + 1, "TopSGD")
