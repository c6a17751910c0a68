"""Model.train and Model.eval; one function makes both datasets."""

import argparse

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="CPU")
parser.add_argument("--batch", type=int, default=8)
args = parser.parse_args()


def make(part, rows, batch):
    rng = np.random.default_rng(rows)
    number = np.arange(rows, dtype=np.float32).reshape(-1, 1)
    x = np.concatenate([number / rows, rng.normal(size=(rows, 3)).astype(np.float32)], axis=1)
    y = rng.normal(size=(rows, 2)).astype(np.float32)
    data = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=False)
    return data.batch(batch, drop_remainder=part == "train")


if __name__ == "__main__":
    ms.set_context(mode=ms.GRAPH_MODE, device_target=args.device)
    ms.set_seed(1)
    net = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2))
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    model = ms.Model(net, nn.MSELoss(), optimizer, metrics={"loss": nn.Loss()})
    model.train(3, make("train", 64, args.batch), dataset_sink_mode=False)
    print("evaluated", model.eval(make("test", 25, 5), dataset_sink_mode=False))
