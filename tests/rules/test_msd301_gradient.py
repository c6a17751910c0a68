"""C23 to C30: what averages by itself stays, what is taken by hand passes through one reducer, first of all."""

import pytest
from support import HEAD, TRAINING, changed_lines, converted, found, refused, run

START = (
    HEAD
    + """\
from mindspore import ops
ms.set_context(mode=0)
train = ds.NumpySlicesDataset([[1.0]]).batch(1, True)
net = nn.Dense(1, 1)
opt = nn.SGD(net.trainable_params(), 0.1)
"""
)
LOOP = "for x, in train.create_tuple_iterator():\n"
BUILT = "grad_reducer = nn.DistributedGradReducer(opt.parameters) if rank_size is not None else nn.Identity()"


def reductions(program: str) -> list[str]:
    """Return the lines with a reducer that come in."""
    return [line for line in changed_lines(program)[1] if "reducer" in line]


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("train = ds.MnistDataset('/d')\n" + TRAINING, id="Model.train"),
        pytest.param(
            "train = ds.MnistDataset('/d')\nnet = nn.Dense(1, 1)\nopt = nn.SGD(net.trainable_params())\n"
            "cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), opt)\n"
            "for x, y in train.create_tuple_iterator():\n    cell(x, y)\n",
            id="C29-TrainOneStepCell",
        ),
        pytest.param(
            "train = ds.MnistDataset('/d')\nnet = nn.Dense(1, 1)\nopt = nn.SGD(net.trainable_params())\n"
            "cell = nn.TrainOneStepWithLossScaleCell(net, opt, scale_sense=ms.Tensor(1.0))\n"
            "for x, y in train.create_tuple_iterator():\n    cell(x, y)\n",
            id="loss-scale-cell",
        ),
    ],
)
def test_cells_that_average_get_no_reducer(program: str) -> None:
    out = converted(HEAD + "ms.set_context(mode=0)\n" + program)
    assert "DistributedGradReducer" not in out
    assert "num_shards=rank_size" in out
    kept = [f.message for f in run(HEAD + "ms.set_context(mode=0)\n" + program).findings if f.code == "MSD301"]
    assert kept
    assert all("itself" in message for message in kept)


@pytest.mark.parametrize(
    "between",
    [
        pytest.param("", id="C23-nothing"),
        pytest.param("    grads = ops.clip_by_global_norm(grads, 1.0)\n", id="C26-clip"),
        pytest.param("    grads = [ops.clip_by_value(g, -1, 1) for g in grads]\n", id="clip-each"),
        pytest.param("    grads = tuple(g - g.mean() for g in grads)\n", id="projection-in-python"),
        pytest.param("    if not ms.amp.all_finite(grads):\n        continue\n", id="finite-check-that-skips"),
        pytest.param("    if ms.amp.all_finite(grads):\n        print(loss)\n", id="finite-check-of-the-gradients"),
        pytest.param("    grads = scaler.unscale(grads)\n", id="unscale-by-a-library"),
    ],
)
def test_the_reducer_comes_before_everything_else(between: str) -> None:
    program = START + (
        "import scalers\nscaler = scalers.make()\n"
        "grad_fn = ms.value_and_grad(lambda x: net(x).sum(), None, opt.parameters)\n"
        "for x, in train.create_tuple_iterator():\n    loss, grads = grad_fn(x)\n" + between + "    opt(grads)\n"
    )
    assert reductions(program) == [BUILT, "    grads = grad_reducer(grads)"]
    lines = converted(program).splitlines()
    assert lines.index(BUILT) == lines.index("opt = nn.SGD(net.trainable_params(), 0.1)") + 1
    assert lines.index("    grads = grad_reducer(grads)") == lines.index("    loss, grads = grad_fn(x)") + 1


@pytest.mark.parametrize(
    ("step", "lines"),
    [
        pytest.param(
            "grad_fn = ms.ops.value_and_grad(net, None, opt.parameters)\nacc = None\n"
            "for i, (x,) in enumerate(train.create_tuple_iterator()):\n    loss, g = grad_fn(x)\n"
            "    acc = g if acc is None else [a + b for a, b in zip(acc, g)]\n"
            "    if (i + 1) % 4 == 0:\n        opt(tuple(acc)); acc = None\n",
            [BUILT, "    g = grad_reducer(g)"],
            id="C25-accumulation-once-for-each-contribution",
        ),
        pytest.param(
            "grad_fn = ops.grad(net, None, opt.parameters)\n"
            "for x, in train.create_tuple_iterator():\n    opt(grad_fn(x))\n",
            [BUILT, "    opt(grad_reducer(grad_fn(x)))"],
            id="ops.grad-inline",
        ),
        pytest.param(
            "grad_fn = ms.value_and_grad(net, None, opt.parameters, has_aux=True)\n"
            "for x, in train.create_tuple_iterator():\n"
            "    (loss, _), grads = grad_fn(x)\n    loss = ops.depend(loss, opt(grads))\n",
            [BUILT, "    grads = grad_reducer(grads)"],
            id="aux-and-depend",
        ),
        pytest.param(
            "grad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
            "for x, in train.create_tuple_iterator():\n    grads = grad_fn(x)[1]\n    opt(grads)\n",
            [BUILT, "    grads = grad_reducer(grad_fn(x)[1])"],
            id="taken-by-index",
        ),
        pytest.param(
            "grad_op = ops.GradOperation(get_by_list=True)\n"
            "for x, in train.create_tuple_iterator():\n    grads = grad_op(net, opt.parameters)(x)\n    opt(grads)\n",
            [BUILT, "    grads = grad_reducer(grad_op(net, opt.parameters)(x))"],
            id="GradOperation",
        ),
        pytest.param(
            "forward = nn.ForwardValueAndGrad(net, opt.parameters, get_by_list=True)\n"
            "for x, in train.create_tuple_iterator():\n    loss, grads = forward(x)\n    opt(grads)\n",
            [BUILT, "    grads = grad_reducer(grads)"],
            id="ForwardValueAndGrad",
        ),
        pytest.param(
            "grad_reducer = None\ngrad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
            "for x, in train.create_tuple_iterator():\n    loss, grads = grad_fn(x)\n    opt(grads)\n",
            [BUILT.replace("grad_reducer", "grad_reducer_2"), "    grads = grad_reducer_2(grads)"],
            id="the-name-is-taken",
        ),
        pytest.param(
            "def step(x):\n    loss, grads = grad_fn(x)\n    opt(grads)\n    return loss\n"
            "grad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
            "@ms.jit\ndef compiled(x):\n    return step(x)\n"
            "for x, in train.create_tuple_iterator():\n    compiled(x)\n",
            [BUILT, "    grads = grad_reducer(grads)"],
            id="in-functions",
        ),
        pytest.param(
            "from mindspore.experimental import optim\nother = optim.SGD(net.trainable_params(), 0.1)\n"
            "grad_fn = ms.value_and_grad(net, None, net.trainable_params())\n"
            "for x, in train.create_tuple_iterator():\n    loss, grads = grad_fn(x)\n    other(grads)\n",
            [
                "grad_reducer = nn.DistributedGradReducer(net.trainable_params()) "
                "if rank_size is not None else nn.Identity()",
                "    grads = grad_reducer(grads)",
            ],
            id="weights-as-the-gradient-says",
        ),
    ],
)
def test_forms_of_taking_and_applying(step: str, lines: list[str]) -> None:
    assert reductions(START + step) == lines


@pytest.mark.parametrize(
    ("step", "lines"),
    [
        pytest.param(
            "    both = grad_fn(x)\n    opt(both[1])\n",
            ["    both = (both[0], grad_reducer(both[1]))"],
            id="a-pair-by-index",
        ),
        pytest.param(
            "    both = grad_fn(x)\n    loss, grads = both\n    opt(grads)\n",
            ["    both = (both[0], grad_reducer(both[1]))"],
            id="a-pair-taken-apart-later",
        ),
        pytest.param(
            "    loss, (of_x, grads) = both_fn(x)\n    opt(grads)\n",
            ["    grads = grad_reducer(grads)"],
            id="of-inputs-and-weights",
        ),
        pytest.param(
            "    loss, grads = both_fn(x)\n    opt(grads[1])\n",
            ["    grads = (grads[0], grad_reducer(grads[1]))"],
            id="of-inputs-and-weights-by-index",
        ),
        pytest.param(
            "    of_x, grads = plain_fn(x)\n    opt(grads)\n",
            ["    grads = grad_reducer(grads)"],
            id="of-inputs-and-weights-without-the-value",
        ),
        pytest.param(
            "    opt.construct(grad_fn(x)[1])\n", ["    opt.construct(grad_reducer(grad_fn(x)[1]))"], id="construct"
        ),
    ],
)
def test_gradients_that_come_with_something_else(step: str, lines: list[str]) -> None:
    """The part that the optimizer is given is averaged, and nothing else of the pair."""
    program = START + (
        "grad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
        "both_fn = ms.value_and_grad(net, 0, opt.parameters)\nplain_fn = ms.grad(net, 0, opt.parameters)\n"
        "for x, in train.create_tuple_iterator():\n" + step
    )
    assert reductions(program) == [BUILT, *lines]


def test_a_pair_that_a_function_returns_as_it_is_comes_out_averaged() -> None:
    program = START + (
        "grad_fn = ms.value_and_grad(net, None, opt.parameters)\ndef take(x):\n    return grad_fn(x)\n"
        "for x, in train.create_tuple_iterator():\n    loss, grads = take(x)\n    opt(grads)\n"
    )
    gone, come = changed_lines(program)
    assert "    return grad_fn(x)" in gone
    assert come[-2:] == ["    value, gradients = grad_fn(x)", "    return value, grad_reducer(gradients)"]


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(
            "out = []\n    for g in grads:\n        out.append(g - g.mean())\n    return tuple(out)", id="append"
        ),
        pytest.param(
            "out = list()\n    for g in grads:\n        out += [g]\n        out.append(g)\n    return out", id="list"
        ),
    ],
)
def test_gradients_in_a_list_that_a_helper_fills_are_followed(between: str) -> None:
    program = START + (
        "grad_fn = ms.value_and_grad(net, None, opt.parameters)\ndef centred(grads):\n    " + between + "\n" + LOOP
        + "    loss, grads = grad_fn(x)\n    opt(centred(grads))\n"
    )  # fmt: skip
    assert reductions(program) == [BUILT, "    grads = grad_reducer(grads)"]


SUMS = """\
add = ops.MultitypeFuncGraph("add")
@add.register("Tensor", "Tensor")
def _add(total, one):
    return ops.assign_add(total, one)
class Step(nn.Cell):
    def __init__(self, net, opt):
        super().__init__()
        self.net, self.opt, self.weights = net, opt, opt.parameters
        self.sums = self.weights.clone(prefix="sum", init="zeros")
        self.grad, self.map = ops.GradOperation(get_by_list=True), ops.HyperMap()
    def construct(self, x):
        grads = self.grad(self.net, self.weights)(x)
        UPDATE
        return self.opt(self.sums)
step = Step(net, opt)
for x, in train.create_tuple_iterator():
    step(x)
"""


@pytest.mark.parametrize(
    "update",
    [
        pytest.param("self.map(ops.assign_add, self.sums, grads)", id="an-operator-over-all"),
        pytest.param("self.map(add, self.sums, grads)", id="a-function-over-all"),
        pytest.param(
            "for total, g in zip(self.sums, grads):\n            ops.assign(total, total + g)", id="one-by-one"
        ),
    ],
)
def test_each_contribution_to_sums_in_parameters_is_averaged(update: str) -> None:
    built, used = reductions(START + SUMS.replace("UPDATE", update))
    assert built.startswith("        self.grad_reducer = nn.DistributedGradReducer(self.weights) if ")
    assert used == "        grads = self.grad_reducer(self.grad(self.net, self.weights)(x))"


def test_sums_that_are_averaged_where_they_are_applied_get_no_second_reducer() -> None:
    cell = SUMS.replace("UPDATE", "self.map(ops.assign_add, self.sums, grads)")
    cell = cell.replace("self.opt(self.sums)", "self.opt(self.reduce(self.sums))").replace(
        "    def construct", "        self.reduce = nn.DistributedGradReducer(opt.parameters)\n    def construct"
    )
    assert reductions(START + cell) == []
    assert [status for status, _ in found(run(START + cell), "MSD304")] == ["kept"]


def test_two_optimizers_have_a_reducer_each_on_their_own_weights() -> None:
    program = START + (
        "other = nn.Dense(1, 1)\nopt2 = nn.Adam(other.trainable_params())\n"
        "grad1 = ms.value_and_grad(net, None, net.trainable_params())\n"
        "grad2 = ms.value_and_grad(other, None, other.trainable_params())\n"
        "for x, in train.create_tuple_iterator():\n    l1, g1 = grad1(x)\n    opt(g1)\n"
        "    l2, g2 = grad2(x)\n    opt2(g2)\n"
    )
    out = converted(program).splitlines()
    first = next(line for line in out if "DistributedGradReducer(net." in line).split()[0]
    second = next(line for line in out if "DistributedGradReducer(other." in line).split()[0]
    assert first != second
    assert f"    g1 = {first}(g1)" in out
    assert f"    g2 = {second}(g2)" in out


CELL = """\
class Step(nn.Cell):
    def __init__(self, net, opt):
        super().__init__()
        self.net, self.opt = net, opt
        self.grad = ops.GradOperation(get_by_list=True)
    def construct(self, x):
        g = self.grad(self.net, self.opt.parameters)(x)
        return self.opt(g)
step = Step(net, opt)
for x, in train.create_tuple_iterator():
    step(x)
"""


def test_c28_an_own_train_cell_builds_in_init_and_reduces_in_construct() -> None:
    out = converted(START + CELL)
    init, construct = out[out.index("def __init__") :].split("def construct")[:2]
    assert "self.grad_reducer = nn.DistributedGradReducer(self.opt.parameters) if " in init
    assert "DistributedGradReducer" not in construct
    assert "g = self.grad_reducer(self.grad(self.net, self.opt.parameters)(x))" in construct


def test_two_optimizers_of_one_cell_have_a_reducer_each() -> None:
    program = START + (
        "other = nn.Dense(1, 1)\nopt2 = nn.SGD(other.trainable_params())\n"
        "class Both(nn.Cell):\n    def __init__(self, one, two, opt, opt2):\n        super().__init__()\n"
        "        self.one, self.two, self.opt, self.opt2 = one, two, opt, opt2\n"
        "        self.grad = ops.GradOperation(get_by_list=True)\n"
        "    def construct(self, x):\n"
        "        g = self.grad(self.one, self.opt.parameters)(x)\n"
        "        h = self.grad(self.two, self.opt2.parameters)(x)\n"
        "        return self.opt(g), self.opt2(h)\n"
        "both = Both(net, other, opt, opt2)\nfor x, in train.create_tuple_iterator():\n    both(x)\n"
    )
    out = converted(program)
    assert "self.grad_reducer = nn.DistributedGradReducer(self.opt.parameters) if" in out
    assert "self.grad_reducer_2 = nn.DistributedGradReducer(self.opt2.parameters) if" in out
    assert "g = self.grad_reducer(self.grad(self.one" in out
    assert "h = self.grad_reducer_2(self.grad(self.two" in out


def test_a_gradient_function_on_self_reduces_beside_it() -> None:
    program = START + (
        "class Trainer:\n    def __init__(self, net, opt):\n        self.opt = opt\n"
        "        self.grad_fn = ms.value_and_grad(net, None, opt.parameters)\n\n"
        "    def step(self, x):\n        loss, grads = self.grad_fn(x)\n        self.opt(grads)\n\n"
        "trainer = Trainer(net, opt)\nfor x, in train.create_tuple_iterator():\n    trainer.step(x)\n"
    )
    built, used = reductions(program)
    assert built.startswith("        self.grad_reducer = nn.DistributedGradReducer(opt.parameters) if ")
    assert used == "        grads = self.grad_reducer(grads)"


@pytest.mark.parametrize(
    "take",
    [
        pytest.param(
            "        made = self.grad(self.net, weights)\n        g = made(x)\n", id="made-on-a-line-of-its-own"
        ),
        pytest.param("        g = ops.value_and_grad(self.net, None, self.weights)(x)[1]\n", id="made-and-called"),
    ],
)
def test_a_gradient_function_made_in_construct_has_its_reducer_in_init(take: str) -> None:
    cell = CELL.replace(
        "        g = self.grad(self.net, self.opt.parameters)(x)\n", "        weights = self.weights\n" + take
    )
    cell = cell.replace("    def construct", "        self.weights = opt.parameters\n    def construct")
    built, used = reductions(START + cell)
    assert built == (
        "        self.grad_reducer = nn.DistributedGradReducer(self.weights) if rank_size is not None else nn.Identity()"
    )
    assert used.startswith("        g = self.grad_reducer(")
    lines = converted(START + cell).splitlines()
    assert lines[lines.index(built) + 1] == "    def construct(self, x):"


def test_init_that_trains_has_no_reducer_at_its_end() -> None:
    """The end of ``__init__`` comes too late for the steps it runs itself."""
    cell = CELL.replace("    def construct", "        self.construct(x0)\n    def construct").replace(
        "class", "x0 = 1\nclass"
    )
    refused(START + cell, "MSD302", START.count("\n") + 9, "no place")


def test_a_reducer_is_built_where_the_weights_get_their_name() -> None:
    program = START + (
        "weights = ms.ParameterTuple(net.trainable_params())\ngrad_op = ops.GradOperation(get_by_list=True)\n"
        "for x, in train.create_tuple_iterator():\n    opt(grad_op(net, weights)(x))\n"
    )
    lines = converted(program).splitlines()
    named = lines.index("weights = ms.ParameterTuple(net.trainable_params())")
    assert lines[named + 1].startswith("grad_reducer = nn.DistributedGradReducer(weights) if ")


ONE_BATCH = """\
def one_batch(net, optimizer, x):
    grad_fn = ms.value_and_grad(net, None, optimizer.parameters)
    loss, grads = grad_fn(x)
    optimizer(grads)
"""


@pytest.mark.parametrize(
    ("step", "built"),
    [
        pytest.param(
            ONE_BATCH + "for x, in train.create_tuple_iterator():\n    one_batch(net, opt, x)\n",
            BUILT,
            id="one-optimizer",
        ),
        pytest.param(
            ONE_BATCH + "other = nn.Adam(net.trainable_params())\nfor x, in train.create_tuple_iterator():\n"
            "    one_batch(net, opt, x)\n    one_batch(net, other, x)\n",
            "    " + BUILT.replace("opt.parameters", "optimizer.parameters"),
            id="two-optimizers-take-turns",
        ),
        pytest.param(
            "class Trainer:\n    def __init__(self):\n        self.opt = opt\n    def step(self, x):\n"
            "        grad_fn = ms.value_and_grad(net, None, self.opt.parameters)\n        loss, grads = grad_fn(x)\n"
            "        self.opt(grads)\ntrainer = Trainer()\n"
            "for x, in train.create_tuple_iterator():\n    trainer.step(x)\n",
            "        self." + BUILT.replace("(opt", "(self.opt"),
            id="in-a-method",
        ),
    ],
)
def test_a_gradient_function_made_for_each_batch_does_not_have_its_reducer_made_so(step: str, built: str) -> None:
    """As far as one object is passed every time: otherwise the reducer is of the weights that come."""
    assert reductions(START + step)[0] == built


def test_none_is_no_gradient_function() -> None:
    program = START + (
        "class Lazy:\n    def __init__(self):\n        self.opt, self.grad_fn = opt, None\n    def step(self, x):\n"
        "        if self.grad_fn is None:\n"
        "            self.grad_fn = ms.value_and_grad(net, None, self.opt.parameters)\n"
        "        loss, grads = self.grad_fn(x)\n        self.opt(grads)\nlazy = Lazy()\n"
        "for x, in train.create_tuple_iterator():\n    lazy.step(x)\n"
    )
    assert reductions(program) == [
        "        self." + BUILT.replace("(opt", "(self.opt"),
        "        grads = self.grad_reducer(grads)",
    ]


def test_gradients_of_a_class_that_is_never_built_are_not_judged() -> None:
    unused = (
        CELL[: CELL.index("step = ")].replace("Step", "Unused").replace("return self.opt(g)", "return self.apply(g)")
    )
    by_hand = "for p in net.trainable_params():\n    p.set_data(p * 2)\n"
    used = "grad_fn = ms.grad(net, None, opt.parameters)\n" + LOOP + "    opt(grad_fn(x))\n"
    result = run(START + unused + by_hand + used)
    assert ("kept", START.count("\n") + 7) in found(result, "MSD301")
    assert not result.refused
    refused(START + unused + "maybe = Unused\n" + by_hand + used, "MSD302", START.count("\n") + 7, "by hand")


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(
            "reducer = nn.DistributedGradReducer(opt.parameters)\n"
            "grad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
            "for x, in train.create_tuple_iterator():\n    loss, grads = grad_fn(x)\n"
            "    grads = reducer(grads)\n    opt(grads)\n",
            id="own-reducer",
        ),
        pytest.param(
            "class Step(nn.TrainOneStepCell):\n    def construct(self, x):\n        loss = self.network(x)\n"
            "        grads = self.grad(self.network, self.weights)(x, self.sens)\n"
            "        grads = self.grad_reducer(grads)\n        return ops.depend(loss, self.optimizer(grads))\n"
            "step = Step(net, opt)\nfor x, in train.create_tuple_iterator():\n    step(x)\n",
            id="inherited-reducer",
        ),
    ],
)
def test_gradients_that_are_reduced_get_no_second_reducer(step: str) -> None:
    assert reductions(START + step) == []
    assert [status for status, _ in found(run(START + step), "MSD304")] == ["kept"]


def test_gradients_that_are_only_read_get_no_reducer() -> None:
    program = START + (
        "saliency = ops.grad(net)\nnorms = ms.value_and_grad(net, None, net.trainable_params())\n"
        "grad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
        "for x, in train.create_tuple_iterator():\n    print(saliency(x), norms(x)[1])\n"
        "    loss, grads = grad_fn(x)\n    opt(grads)\n"
    )
    assert reductions(program) == [BUILT, "    grads = grad_reducer(grads)"]
    assert ("kept", 13) in found(run(program), "MSD301")


@pytest.mark.parametrize(
    ("step", "line", "message"),
    [
        pytest.param(
            "import helpers\nfor x, in train.create_tuple_iterator():\n    opt(helpers.gradient(net, x))\n",
            11,
            "cannot be followed",
            id="gradient-from-elsewhere",
        ),
        pytest.param(
            "grad_fn = ms.value_and_grad(net, None, opt.parameters)\nupdates = {'main': opt}\nkey = input()\n"
            "for x, in train.create_tuple_iterator():\n    loss, grads = grad_fn(x)\n    pick(updates, key)(grads)\n",
            13,
            "cannot be followed",
            id="C30-optimizer-out-of-reach",
        ),
        pytest.param(
            "grad_fn = ms.value_and_grad(net, 0, opt.parameters)\n"
            "for x, in train.create_tuple_iterator():\n    loss, grads = grad_fn(x)\n    opt(grads)\n",
            11,
            "grad_position=None",
            id="with-gradients-of-inputs",
        ),
        pytest.param(
            "grad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
            "for x, in train.create_tuple_iterator():\n    loss, *grads = grad_fn(x)\n    opt(grads[0])\n",
            11,
            "taken apart",
            id="not-taken-apart",
        ),
        pytest.param(
            "reducer = nn.DistributedGradReducer(opt.parameters)\n"
            "grad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
            "for x, in train.create_tuple_iterator():\n    loss, grads = grad_fn(x)\n"
            "    opt(reducer(reducer(grads)))\n",
            12,
            "two reducers",
            id="reduced-twice",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused_at_its_line(step: str, line: int, message: str) -> None:
    refused(START + step, "MSD302", line, message)


def test_an_optimizer_without_any_training_is_refused() -> None:
    refused(START + "import registry\nregistry.run(net)\n", "MSD305", 8, "no training")


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(
            "import sys\nother = None\nif sys.argv[1:]:\n    other = nn.Adam(net.trainable_params())\n"
            "grad_fn = ms.value_and_grad(net, None, net.trainable_params())\n"
            + LOOP
            + "    loss, g = grad_fn(x)\n    if other:\n        other(g)\n    else:\n        opt(g)\n",
            id="optimizer-under-a-condition",
        ),
        pytest.param(
            "grad_fn = ms.value_and_grad(net, None, net.trainable_params())\ndef run(apply):\n    "
            + LOOP
            + "        loss, g = grad_fn(x)\n        apply(g)\nrun(lambda g: opt(g))\n"
            "late = nn.Adam(net.trainable_params())\nrun(late)\n",
            id="a-later-optimizer",
        ),
    ],
)
def test_the_reducer_is_built_where_every_way_passes(step: str) -> None:
    """Behind the gradient function, where the optimizer's place may be left out or come too late."""
    out = converted(START + step).splitlines()
    made = next(i for i, line in enumerate(out) if line.startswith("grad_fn = "))
    assert out[made + 1].startswith("grad_reducer = nn.DistributedGradReducer(net.trainable_params()) if ")


def test_a_trainer_that_is_configured_later_builds_beside_its_gradient_function() -> None:
    program = START + (
        "class Trainer:\n    def __init__(self, net):\n        self.net = net\n\n    def configure(self):\n"
        "        self.opt = nn.SGD(self.net.trainable_params())\n"
        "        self.grad_fn = ms.value_and_grad(self.net, None, self.opt.parameters)\n\n    def fit(self):\n"
        "        self.configure()\n        for x, in train.create_tuple_iterator():\n"
        "            loss, grads = self.grad_fn(x)\n            self.opt(grads)\n\nTrainer(net).fit()\n"
    )
    out = converted(program).splitlines()
    made = next(i for i, line in enumerate(out) if "self.grad_fn = " in line)
    assert out[made + 1].startswith("        self.grad_reducer = nn.DistributedGradReducer(self.opt.parameters) if ")


@pytest.mark.parametrize(
    ("step", "line", "message"),
    [
        pytest.param(
            "grad_fn = ms.grad(net, None, opt.parameters, has_aux=True)\n"
            + LOOP
            + "    grads, aux = grad_fn(x)\n    opt(grads)\n",
            11,
            "has_aux",
            id="aux-beside-plain-gradients",
        ),
        pytest.param(
            "grad_fn = ms.value_and_grad(net, None, opt.parameters, return_ids=True)\n"
            + LOOP
            + "    loss, grads = grad_fn(x)\n    opt(grads)\n",
            11,
            "return_ids",
            id="ids-beside-gradients",
        ),
        pytest.param(
            "grad_fn = ms.value_and_grad(net, None, net.weight)\n"
            + LOOP
            + "    loss, grads = grad_fn(x)\n    opt((grads,))\n",
            11,
            "a list",
            id="one-parameter",
        ),
        pytest.param(
            "some = filter(lambda p: 'w' in p.name, net.trainable_params())\n"
            "grad_fn = ms.value_and_grad(net, None, ms.ParameterTuple(some))\n"
            + LOOP
            + "    loss, grads = grad_fn(x)\n    opt(grads)\n",
            12,
            "read twice",
            id="iterator-of-parameters",
        ),
        pytest.param(
            "other = nn.Dense(1, 1)\ngrad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
            "by_hand = ms.value_and_grad(other, None, other.trainable_params())\n"
            + LOOP
            + "    loss, grads = grad_fn(x)\n    opt(grads)\n    loss, grads = by_hand(x)\n"
            "    for p, g in zip(other.trainable_params(), grads):\n        ops.assign_sub(p, 0.1 * g)\n",
            15,
            "by hand",
            id="weights-changed-by-hand",
        ),
        pytest.param(
            "import argparse\nargs = argparse.ArgumentParser().parse_args()\n"
            "grad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
            "reducer = nn.DistributedGradReducer(opt.parameters) if args.distributed else None\n"
            + LOOP
            + "    loss, grads = grad_fn(x)\n    if args.distributed:\n        grads = reducer(grads)\n    opt(grads)\n",
            14,
            "args.distributed",
            id="reducer-under-a-flag",
        ),
        pytest.param(
            "grad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
            "reducer = nn.DistributedGradReducer(opt.parameters)\n"
            + LOOP
            + "    loss, grads = grad_fn(x)\n    grads = ops.clip_by_global_norm(grads)\n    opt(reducer(grads))\n",
            12,
            "before they are averaged",
            id="clip-before-reduce",
        ),
    ],
)
def test_what_would_train_wrongly_is_refused(step: str, line: int, message: str) -> None:
    refused(START + step, "MSD302", line, message)


def test_weights_changed_by_hand_without_any_optimizer_are_refused() -> None:
    program = HEAD + (
        "from mindspore import ops\nms.set_context(mode=0)\ntrain = ds.NumpySlicesDataset([[1.0]]).batch(1)\n"
        "net = nn.Dense(1, 1)\ngrad_fn = ms.value_and_grad(net, None, net.trainable_params())\n"
        "for x, in train.create_tuple_iterator():\n    loss, grads = grad_fn(x)\n"
        "    for p, g in zip(net.trainable_params(), grads):\n        ops.assign_sub(p, 0.1 * g)\n"
    )
    refused(program, "MSD302", 10, "by hand")


def test_gradients_reduced_for_one_optimizer_only_are_refused() -> None:
    program = START + (
        "opt2 = nn.Adam(net.trainable_params())\nreducer = nn.DistributedGradReducer(opt.parameters)\n"
        "grad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
        + LOOP
        + "    loss, grads = grad_fn(x)\n    opt(reducer(grads))\n    opt2(grads)\n"
    )
    refused(program, "MSD302", 13, "not for another")


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        pytest.param("ms.get_auto_parallel_context('parallel_mode') == ms.ParallelMode.DATA_PARALLEL", True, id="mode"),
        pytest.param("args.parallel", False, id="a-flag-called-parallel"),
    ],
)
def test_a_reducer_under_a_condition_is_kept_if_it_holds_on_many_ranks(condition: str, kept: bool) -> None:
    program = START + (
        "import argparse\nargs = argparse.ArgumentParser().parse_args()\n"
        "grad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
        f"reducer = nn.DistributedGradReducer(opt.parameters) if {condition} else nn.Identity()\n"
        + LOOP
        + "    loss, grads = grad_fn(x)\n    opt(reducer(grads))\n"
    )
    if kept:
        assert [status for status, _ in found(run(program), "MSD304")] == ["kept"]
    else:
        refused(program, "MSD302", 14, "args.parallel")


@pytest.mark.parametrize(
    ("arguments", "sums"),
    [
        pytest.param("opt.parameters, False, 2", True, id="literally"),
        pytest.param("opt.parameters, mean=mean", True, id="by-a-name"),
        pytest.param("opt.parameters, True, 2", False, id="mean"),
        pytest.param("opt.parameters, ms.get_auto_parallel_context('gradients_mean')", False, id="as-the-context-says"),
    ],
)
def test_a_reducer_that_adds_up_is_refused(arguments: str, sums: bool) -> None:
    program = START + (
        f"mean = False\nreducer = nn.DistributedGradReducer({arguments})\n"
        "grad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
        + LOOP
        + "    loss, grads = grad_fn(x)\n    opt(reducer(grads))\n"
    )
    if sums:
        refused(program, "MSD302", 13, "mean=False")
        divided = program.replace("opt(reducer(grads))", "opt(tuple(g / size for g in reducer(grads)))")
        divided = divided.replace(
            "mean = False", "from mindspore.communication import get_group_size as size_of\nmean = False"
        )
        divided = divided.replace("    opt", "    size = size_of()\n    opt")
        assert [status for status, _ in found(run(divided), "MSD304")] == ["kept"]
    else:
        assert [status for status, _ in found(run(program), "MSD304")] == ["kept"]


def test_a_reducer_that_adds_up_and_is_divided_with_the_loss_scale_averages() -> None:
    """What public cells do: the scale is multiplied by the degree, and the gradients are divided by both."""
    cell = CELL.replace("        self.grad =", "        self.degree = DEGREE\n        self.grad =")
    cell = cell.replace(
        "    def construct",
        "        self.reduce = nn.DistributedGradReducer(opt.parameters, False, self.degree)\n    def construct",
    )
    cell = cell.replace(
        "return self.opt(g)", "return self.opt(ops.HyperMap()(ops.partial(unscale, 8.0 * self.degree), self.reduce(g)))"
    )
    program = START + "def unscale(scale, g):\n    return g / scale\n" + cell.replace("DEGREE", "ms.get_degree()")
    assert [status for status, _ in found(run(program), "MSD304")] == ["kept"]
    refused(program.replace("8.0 * self.degree", "8.0"), "MSD302", START.count("\n") + 11, "mean=False")


def test_a_reducer_behind_a_clip_moves_in_front_of_it() -> None:
    program = START + (
        "reducer = nn.DistributedGradReducer(opt.parameters)\ngrad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
        "for x, in train.create_tuple_iterator():\n    loss, grads = grad_fn(x)\n    norm = ops.norm(grads[0])\n"
        "    if norm > 1:\n        grads = ops.clip_by_norm(grads, 1.0)\n    grads = reducer(grads)\n    opt(grads)\n"
    )
    lines = converted(program).splitlines()
    assert lines[lines.index("    loss, grads = grad_fn(x)") + 1] == "    grads = reducer(grads)"
    assert lines.count("    grads = reducer(grads)") == 1


def test_a_reducer_behind_a_clip_that_cannot_be_moved_is_refused() -> None:
    program = START + (
        "reducer = nn.DistributedGradReducer(opt.parameters)\ngrad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
        "for x, in train.create_tuple_iterator():\n    loss, grads = grad_fn(x)\n"
        "    opt(reducer(ops.clip_by_norm(grads, 1.0)))\n"
    )
    refused(program, "MSD302", 12, "before they are averaged")
