from support import HEAD, converted, refused

START = HEAD + "ms.set_context(mode=0)\ntrain = ds.MnistDataset('/d')\nnet = nn.Dense(1, 1)\nopt = nn.SGD(net.trainable_params())\n"
LOOP = "for x, y in train.create_tuple_iterator():\n    cell(x, y)\n"


def test_a_subclass_that_keeps_construct_averages_by_itself() -> None:
    step = "class Step(nn.TrainOneStepCell):\n    pass\ncell = Step(nn.WithLossCell(net, nn.MSELoss()), opt)\n"
    assert "num_shards=rank_size" in converted(START + step + LOOP)


def test_a_subclass_with_its_own_construct_is_refused() -> None:
    step = (
        "class Step(nn.TrainOneStepCell):\n    def construct(self, x, y):\n        return self.network(x, y)\n"
        "cell = Step(nn.WithLossCell(net, nn.MSELoss()), opt)\n"
    )
    refused(START + step + LOOP, "MSD303", 8, "Step")


def test_an_optimizer_of_the_programs_own_is_refused() -> None:
    step = (
        "class Mine(nn.SGD):\n    pass\nmine = Mine(net.trainable_params())\n"
        "cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), mine)\n"
    )
    refused(START + step + LOOP, "MSD303", 8, "Mine")
