"""A loop of the program's own over nn.TrainOneStepCell."""

import argparse

import numpy as np
from mindspore import GRAPH_MODE, Tensor, context, nn, set_seed
from mindspore.dataset import NumpySlicesDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--batch", type=int, default=8)
    args = parser.parse_args()
    context.set_context(mode=GRAPH_MODE)
    context.set_context(device_target=args.device)
    set_seed(7)

    rng = np.random.default_rng(0)
    number = np.arange(64, dtype=np.float32).reshape(-1, 1)
    x = np.concatenate([number / 64, rng.normal(size=(64, 3)).astype(np.float32)], axis=1)
    y = rng.integers(0, 2, size=64).astype(np.int32)
    train_set = NumpySlicesDataset({"x": x, "y": y}, shuffle=False)
    train_set = train_set.batch(args.batch, drop_remainder=True)

    net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
    step.set_train()
    for epoch in range(3):
        for x, y in train_set.create_tuple_iterator():
            value = step(x, y)
        print("epoch", epoch, "loss", float(value.asnumpy()))
    assert isinstance(value, Tensor)


if __name__ == "__main__":
    main()
