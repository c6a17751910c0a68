"""Hand-written steps out of public projects, in other words, that must be refused: a conversion would train otherwise."""

import pytest
from support import HEAD, converted, found, refused, run

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
            LOOP + "    loss, grads = grad_fn(x, y)\n    if ops.isfinite(loss).all():\n        opt(grads)\n",
            id="step-skipped-where-the-own-loss-is-not-finite",
        ),
        pytest.param(
            "MSD306",
            5,
            "the loss",
            "last = 9.0\n"
            + LOOP
            + "    loss, grads = grad_fn(x, y)\n    opt(grads)\n    if abs(float(loss[0]) - last) < 1e-6:\n"
            "        break\n    last = float(loss[0])\n",
            id="ended-when-the-own-loss-stands-still",
        ),
    ],
)
def test_steps_that_would_train_otherwise_are_refused(code: str, line: int, message: str, step: str) -> None:
    refused(START + step, code, LINES + line, message)


FLAGGED = """\
class Step(nn.Cell):
    def __init__(self, network, optimizer, reduce_flag=False, mean=True, degree=None):
        super().__init__(auto_prefix=False)
        self.network = network
        self.weights = ms.ParameterTuple(network.trainable_params())
        self.optimizer = optimizer
        self.grad = ops.GradOperation(get_by_list=True)
        SET
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
"""
BUILT = "step = Step(nn.WithLossCell(net, loss_fn), opt)\n"
MODE = "ms.get_auto_parallel_context('parallel_mode')"
TAKE = LINES + 14


@pytest.mark.parametrize(
    ("flag", "built"),
    [
        pytest.param("self.reducer_flag = reduce_flag", BUILT, id="by-default"),
        pytest.param("self.reducer_flag = False", BUILT, id="left-over"),
        pytest.param(f"self.reducer_flag = {MODE} == ms.ParallelMode.STAND_ALONE", BUILT, id="on-one-card-alone"),
    ],
)
def test_a_reducer_under_a_flag_that_is_never_on_counts_as_none(flag: str, built: str) -> None:
    """Nothing would be averaged on many ranks; ours is put beside the one that never runs."""
    out = converted(START + FLAGGED.replace("SET", flag) + built + LOOP + "    step(x, y)\n")
    assert "self.grad_reducer_2 = nn.DistributedGradReducer(self.weights) if rank_size is not None" in out
    assert "grads = self.grad_reducer_2(self.grad(self.network, weights)(x, y))" in out


@pytest.mark.parametrize(
    ("flag", "built"),
    [
        pytest.param("self.reducer_flag = reduce_flag", BUILT.replace("opt)", "opt, True)"), id="passed-as-true"),
        pytest.param("self.reducer_flag = True", BUILT, id="true"),
        pytest.param(f"self.reducer_flag = {MODE} == ms.ParallelMode.DATA_PARALLEL", BUILT, id="mode-is"),
        pytest.param(f"self.reducer_flag = {MODE} != 'stand_alone'", BUILT, id="mode-is-not"),
        pytest.param(
            f"self.reducer_flag = False\n        mode = {MODE}\n"
            "        if mode in (ms.ParallelMode.DATA_PARALLEL, ms.ParallelMode.HYBRID_PARALLEL):\n"
            "            self.reducer_flag = True",
            BUILT,
            id="set-under-the-mode",
        ),
        pytest.param("self.reducer_flag = int(os.environ['RANK_SIZE']) > 1", BUILT, id="by-the-number-of-ranks"),
    ],
)
def test_a_reducer_under_a_flag_that_is_on_on_many_ranks_is_kept(flag: str, built: str) -> None:
    result = run("import os\n" + START + FLAGGED.replace("SET", flag) + built + LOOP + "    step(x, y)\n")
    assert not result.refused
    assert [status for status, _ in found(result, "MSD304")] == ["kept"]
    assert found(result, "MSD301") == []


@pytest.mark.parametrize(
    ("flag", "built"),
    [
        pytest.param("self.reducer_flag = ms.args.reduce", BUILT, id="from-elsewhere"),
        pytest.param(
            "self.reducer_flag = reduce_flag",
            BUILT + BUILT.replace("step", "two").replace("opt)", "opt, True)"),
            id="both",
        ),
        pytest.param(
            "self.reducer_flag = False\n        if ms.on:\n            self.reducer_flag = True", BUILT, id="maybe"
        ),
    ],
)
def test_a_reducer_under_a_flag_that_is_not_known_is_refused(flag: str, built: str) -> None:
    program = START + FLAGGED.replace("SET", flag) + built + LOOP + "    step(x, y)\n"
    refused(program, "MSD302", TAKE + flag.count("\n"), "self.reducer_flag")


def test_a_flag_that_a_train_cell_inherits_follows_the_parallel_mode() -> None:
    step = """\
class Step(nn.TrainOneStepCell):
    def construct(self, x, y):
        loss = self.network(x, y)
        grads = self.grad(self.network, self.weights)(x, y, self.sens)
        if self.reducer_flag:
            grads = self.grad_reducer(grads)
        return ops.depend(loss, self.optimizer(grads))
"""
    result = run(START + step + BUILT + LOOP + "    step(x, y)\n")
    assert [status for status, _ in found(result, "MSD304")] == ["kept"]
    assert not result.refused


@pytest.mark.parametrize("other", ["ops.identity", "nn.Identity()", "None"])
@pytest.mark.parametrize("called", [True, False])
def test_an_inherited_reducer_that_is_overwritten_is_not_relied_on(other: str, called: bool) -> None:
    """What stands in its place averages nothing, whether ``construct`` calls it or not."""
    step = f"""\
class Step(nn.TrainOneStepCell):
    def __init__(self, network, optimizer):
        super().__init__(network, optimizer)
        self.grad_reducer = {other}
    def construct(self, x, y):
        grads = self.grad(self.network, self.weights)(x, y, self.sens)
        CALL
        return self.optimizer(grads)
"""
    call = "grads = self.grad_reducer(grads)" if called and other != "None" else "pass"
    out = converted(START + step.replace("CALL", call) + BUILT + LOOP + "    step(x, y)\n")
    assert "self.grad_reducer_2 = nn.DistributedGradReducer(self.weights) if rank_size is not None" in out
    assert "grads = self.grad_reducer_2(self.grad(self.network, self.weights)(x, y, self.sens))" in out


@pytest.mark.parametrize(
    ("step", "line", "what"),
    [
        pytest.param("    opt(tuple(g * loss for g in grads))\n", 3, "the loss", id="loss"),
        pytest.param("    opt([g / x.abs().max() for g in grads])\n", 3, "its own rows", id="rows"),
        pytest.param("    grads = ops.clip_by_value(grads, 0, loss)\n    opt(grads)\n", 3, "the loss", id="limit"),
        pytest.param("    opt(tuple(g + loss for g in grads))\n", 3, "the loss", id="added"),
        pytest.param(
            "    if loss > 1:\n        grads = ops.clip_by_global_norm(grads)\n    opt(grads)\n", 3, "the loss", id="if"
        ),
        pytest.param(
            "    opt.learning_rate.set_data(ms.grad(forward)(x, y).mean())\n    opt(grads)\n",
            3,
            "gradients by its own rows",
            id="rate-by-gradients-of-inputs",
        ),
        pytest.param(
            "    ops.assign(opt.learning_rate, 0.1 * loss)\n    opt(grads)\n", 3, "sets a parameter", id="rate-assigned"
        ),
        pytest.param(
            "    opt.learning_rate.set_data(loss * 0.1)\n    opt(grads)\n", 3, "sets a parameter", id="rate-set"
        ),
        pytest.param("    opt.learning_rate = 0.1 * loss\n    opt(grads)\n", 3, "learning rate", id="rate-attribute"),
        pytest.param(
            "    opt.param_groups[0]['lr'] = 0.1 * loss\n    opt(grads)\n", 3, "learning rate", id="rate-of-a-group"
        ),
    ],
)
def test_values_of_one_rank_in_averaged_gradients_are_refused(step: str, line: int, what: str) -> None:
    refused(START + LOOP + "    loss, grads = grad_fn(x, y)\n" + step, "MSD306", LINES + line, what)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("    opt(tuple(g / 1024.0 for g in grads))\n", id="a-constant"),
        pytest.param("    grads = ms.amp.StaticLossScaler(8).unscale(grads)\n    opt(grads)\n", id="a-scaler"),
        pytest.param("    opt(ops.depend(grads, loss))\n", id="waited-for"),
        pytest.param(
            "    scale = ops.fill(loss.dtype, loss.shape, 8.0)\n    opt(tuple(g / scale for g in grads))\n", id="fill"
        ),
        pytest.param("    opt(tuple(g / x.shape[0] for g in grads))\n", id="size-of-a-batch"),
        pytest.param("    opt(tuple(g / ops.norm(g) for g in grads))\n", id="by-the-gradients-themselves"),
        pytest.param(
            "    norm = sum(ops.norm(g) for g in grads)\n    opt([g / norm for g in grads])\n", id="their-norm"
        ),
        pytest.param("    opt.learning_rate.set_data(ms.Tensor(0.1))\n    opt(grads)\n", id="rate"),
        pytest.param("    print(loss * x)\n    opt(grads)\n", id="elsewhere"),
    ],
)
def test_what_is_alike_on_all_ranks_may_be_mixed_in(step: str) -> None:
    out = converted(START + LOOP + "    loss, grads = grad_fn(x, y)\n" + step)
    assert "    grads = grad_reducer(grads)" in out


def test_the_scale_of_a_cell_that_checks_for_overflow_is_alike() -> None:
    """The loss goes into the check so that it runs first; what comes out is a status and the scale."""
    step = """\
class Step(nn.TrainOneStepWithLossScaleCell):
    def construct(self, x, y):
        loss = self.network(x, y)
        scale = self.scale_sense
        status, scale = self.start_overflow_check(loss, scale)
        sens = ops.ones_like(loss) * ops.cast(scale, ops.dtype(loss))
        grads = self.grad(self.network, self.weights)(x, y, sens)
        grads = self.hyper_map(ops.partial(unscale, scale), grads)
        grads = self.grad_reducer(grads)
        if not self.process_loss_scale(self.get_overflow_status(status, grads)):
            loss = ops.depend(loss, self.optimizer(grads))
        return loss
"""
    result = run(
        START
        + "def unscale(scale, g):\n    return g * ops.reciprocal(scale)\n"
        + step
        + BUILT.replace("opt)", "opt, ms.Tensor(8.0))")
        + LOOP
        + "    step(x, y)\n"
    )
    assert found(result, "MSD306") == []
    assert not result.refused


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
