"""Graph mode: a train cell of the program's own, and a subclass of TrainOneStepCell that skips its reducer."""

import argparse

import mindspore.dataset as ds
import numpy as np
from mindspore import GRAPH_MODE, ParameterTuple, context, nn, ops, set_seed


class Step(nn.Cell):
    """Takes and applies gradients by itself."""

    def __init__(self, network, optimizer):
        super().__init__()
        self.network = network
        self.optimizer = optimizer
        self.weights = ParameterTuple(network.trainable_params())
        self.grad = ops.GradOperation(get_by_list=True)

    def construct(self, x, y):
        loss = self.network(x, y)
        grads = self.grad(self.network, self.weights)(x, y)
        return ops.depend(loss, self.optimizer(grads))


class Skips(nn.TrainOneStepCell):
    """Forgets the reducer it inherits."""

    def construct(self, x, y):
        loss = self.network(x, y)
        sens = ops.fill(loss.dtype, loss.shape, self.sens)
        grads = self.grad(self.network, self.weights)(x, y, sens)
        loss = ops.depend(loss, self.optimizer(grads))
        return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--batch", type=int, default=8)
    args = parser.parse_args()
    context.set_context(mode=GRAPH_MODE, device_target=args.device)
    set_seed(4)
    rng = np.random.default_rng(1)
    number = np.arange(64, dtype=np.float32).reshape(-1, 1)
    x = np.concatenate([number / 64, rng.normal(size=(64, 3)).astype(np.float32)], axis=1)
    y = rng.normal(size=(64, 2)).astype(np.float32)
    train_set = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(args.batch, drop_remainder=True)

    first, second = nn.Dense(4, 2), nn.Dense(4, 2)
    steps = [
        Step(nn.WithLossCell(first, nn.MSELoss()), nn.Momentum(first.trainable_params(), 0.1, 0.9)),
        Skips(nn.WithLossCell(second, nn.MSELoss()), nn.Adam(second.trainable_params(), 0.01)),
    ]
    one, other = steps
    for _ in range(3):
        for x, y in train_set.create_tuple_iterator():
            one(x, y)
            other(x, y)


main()
