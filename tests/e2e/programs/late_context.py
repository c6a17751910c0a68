"""A base class that builds the dataset of its heirs, a context that is set after it, and a clip before the own reducer."""

import argparse

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="CPU")
parser.add_argument("--batch", type=int, default=8)
args = parser.parse_args()


class ClippedStep(nn.TrainOneStepCell):
    """Clips by the norm of all gradients; on one card the reducer that it inherits does nothing."""

    def construct(self, x, y):
        loss = self.network(x, y)
        grads = self.grad(self.network, self.weights)(x, y, ops.ones_like(loss))
        grads = ops.clip_by_global_norm(grads, 0.1)
        grads = self.grad_reducer(grads)
        return ops.depend(loss, self.optimizer(grads))


class Base:
    def __init__(self, batch):
        self.data = self.load(batch)

    def load(self, batch):
        raise NotImplementedError

    def train(self, device):
        ms.set_context(mode=ms.GRAPH_MODE, device_target=device)
        ms.set_seed(3)
        net = nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 2))
        step = ClippedStep(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.5))
        for epoch in range(3):
            rows = self.data.create_tuple_iterator()
            for _ in range(self.data.get_dataset_size()):
                x, y = rows.__next__()
                step(x, y)


class Trainer(Base):
    def __init__(self, batch):
        super().__init__(batch)

    def load(self, batch):
        rng = np.random.default_rng(64)
        number = np.arange(64, dtype=np.float32).reshape(-1, 1)
        x = np.concatenate([number / 64, rng.normal(size=(64, 3)).astype(np.float32)], axis=1)
        y = rng.normal(size=(64, 2)).astype(np.float32)
        return ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(batch, drop_remainder=True)


def main():
    trainer = Trainer(args.batch)
    trainer.train(args.device)


if __name__ == "__main__":
    main()
