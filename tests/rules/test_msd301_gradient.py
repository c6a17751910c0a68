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
            "for x, in train.create_tuple_iterator():\n    loss, grads = grad_fn(x)\n    opt(grads[1])\n",
            11,
            "grad_position=None",
            id="with-gradients-of-inputs",
        ),
        pytest.param(
            "grad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
            "for x, in train.create_tuple_iterator():\n    both = grad_fn(x)\n    loss, grads = both\n    opt(grads)\n",
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


LOOP = "for x, in train.create_tuple_iterator():\n"


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


def test_a_reducer_behind_a_clip_moves_in_front_of_it() -> None:
    program = START + (
        "reducer = nn.DistributedGradReducer(opt.parameters)\ngrad_fn = ms.value_and_grad(net, None, opt.parameters)\n"
        "for x, in train.create_tuple_iterator():\n    loss, grads = grad_fn(x)\n    norm = ops.norm(x)\n"
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
