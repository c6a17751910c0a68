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


def test_an_optimizer_of_the_programs_own_is_refused() -> None:
    step = (
        "class Mine(nn.SGD):\n    pass\nmine = Mine(net.trainable_params())\n"
        "cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), mine)\n"
    )
    refused(START + step + LOOP, "MSD303", 9, "Mine")


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
