import pytest
from support import HEAD, changed_lines, converted, refused

START = (
    HEAD + "from mindspore import ops\nms.set_context(mode=0)\ntrain = ds.MnistDataset('/d')\nnet = nn.Dense(1, 1)\n"
    "opt = nn.SGD(net.trainable_params())\n"
)
LOOP = "for x, y in train.create_tuple_iterator():\n    cell(x, y)\n"
MADE = "cell = Step(nn.WithLossCell(net, nn.MSELoss()), opt)\n"


def test_a_subclass_that_keeps_construct_averages_by_itself() -> None:
    out = converted(START + "class Step(nn.TrainOneStepCell):\n    pass\n" + MADE + LOOP)
    assert "num_shards=rank_size" in out
    assert "reducer" not in out


def test_a_subclass_that_calls_the_inherited_construct_averages_by_itself() -> None:
    step = "class Step(nn.TrainOneStepCell):\n    def construct(self, x, y):\n        return super().construct(x, y)\n"
    assert "reducer" not in converted(START + step + MADE + LOOP)


def test_a_subclass_that_skips_its_reducer_passes_through_it() -> None:
    step = (
        "class Step(nn.TrainOneStepCell):\n    def construct(self, x, y):\n        loss = self.network(x, y)\n"
        "        grads = self.grad(self.network, self.weights)(x, y, self.sens)\n"
        "        return ops.depend(loss, self.optimizer(grads))\n"
    )
    lines = [line for line in changed_lines(START + step + MADE + LOOP)[1] if "reducer" in line]
    assert lines == ["        grads = self.grad_reducer(self.grad(self.network, self.weights)(x, y, self.sens))"]


def test_a_construct_that_applies_nothing_in_sight_is_refused() -> None:
    step = "class Step(nn.TrainOneStepCell):\n    def construct(self, x, y):\n        return self.network(x, y)\n"
    refused(START + step + MADE + LOOP, "MSD303", 10, "Step")


OWN = """\
class Mine(nn.SGD):
    def __init__(self, *args):
        super().__init__(*args)
        self.base = super().construct
    def construct(self, grads):
        CONSTRUCT
mine = Mine(net.trainable_params())
"""
BY_CELL = "cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), mine)\n" + LOOP
BY_HAND = (
    "grad_fn = ms.value_and_grad(lambda x, y: nn.MSELoss()(net(x), y), None, mine.parameters)\n"
    "for x, y in train.create_tuple_iterator():\n    loss, grads = grad_fn(x, y)\n    mine(grads)\n"
)


@pytest.mark.parametrize(
    "construct",
    [
        pytest.param("grads = tuple(-g for g in grads)\n        return self.base(grads)", id="changed"),
        pytest.param("return self.base(tuple(g * 2 for g in grads))", id="changed-in-the-call"),
        pytest.param("grads[0] = grads[0] * 2\n        return self.base(grads)", id="changed-in-place"),
        pytest.param("return grads", id="not-handed-on"),
        pytest.param("self.base(grads)\n        return self.base(grads)", id="applied-twice"),
    ],
)
@pytest.mark.parametrize("training", [BY_CELL, BY_HAND])
def test_an_optimizer_of_the_programs_own_that_changes_its_gradients_is_refused(construct: str, training: str) -> None:
    refused(START + OWN.replace("CONSTRUCT", construct) + training, "MSD303", 9, "Mine")


@pytest.mark.parametrize(
    "construct",
    [
        pytest.param("print(grads[0])\n        return self.base(grads)", id="looks"),
        pytest.param("return super().construct(grads)", id="super"),
        pytest.param("return super(Mine, self).construct(grads)", id="super-in-full"),
    ],
)
def test_an_optimizer_that_only_looks_at_its_gradients_is_given_averaged_ones(construct: str) -> None:
    own = OWN.replace("CONSTRUCT", construct)
    assert "reducer" not in converted(START + own + BY_CELL)
    lines = [line for line in changed_lines(START + own + BY_HAND)[1] if "reducer" in line]
    assert lines == [
        "grad_reducer = nn.DistributedGradReducer(mine.parameters) if rank_size is not None else nn.Identity()",
        "    grads = grad_reducer(grads)",
    ]


def test_an_optimizer_that_only_bears_another_name_is_the_one_it_inherits_from() -> None:
    assert "num_shards" in converted(
        START + "class Mine(nn.SGD):\n    pass\nmine = Mine(net.trainable_params())\n" + BY_CELL
    )


def test_a_subclass_that_leaves_out_the_init_of_its_base_builds_a_reducer() -> None:
    """``super(Base, self).__init__()`` runs Cell's: there is no inherited reducer to pass through."""
    step = (
        "class Step(nn.TrainOneStepCell):\n    def __init__(self, network, optimizer):\n"
        "        super(nn.TrainOneStepCell, self).__init__(auto_prefix=False)\n        self.network = network\n"
        "        self.optimizer = optimizer\n        self.weights = optimizer.parameters\n"
        "        self.grad = ops.GradOperation(get_by_list=True)\n\n    def construct(self, x, y):\n"
        "        weights = self.weights\n        grads = self.grad(self.network, weights)(x, y)\n"
        "        return self.optimizer(grads)\n"
    )
    lines = [line for line in changed_lines(START + step + MADE + LOOP)[1] if "reducer" in line]
    assert lines[0].startswith("        self.grad_reducer = nn.DistributedGradReducer(self.weights) if ")
    assert lines[1] == "        grads = self.grad_reducer(self.grad(self.network, weights)(x, y))"
