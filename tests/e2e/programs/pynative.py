"""PyNative mode, set_device, a random-access generator source, no seed."""

import argparse

import mindspore
import mindspore.dataset as dataset
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="CPU")
parser.add_argument("--batch", type=int, default=8)
args = parser.parse_args()
mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
mindspore.set_device(args.device)


class Rows:
    """Rows that carry their number in the first column."""

    def __init__(self):
        rng = np.random.default_rng(3)
        number = np.arange(64, dtype=np.float32).reshape(-1, 1)
        self.x = np.concatenate([number / 64, rng.normal(size=(64, 3)).astype(np.float32)], axis=1)
        self.y = rng.normal(size=(64, 1)).astype(np.float32)

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return self.x[index], self.y[index]


train = dataset.GeneratorDataset(Rows(), ["x", "y"], shuffle=False).batch(args.batch, drop_remainder=True)
net = mindspore.nn.Dense(4, 1)
with_loss = mindspore.nn.WithLossCell(net, mindspore.nn.MSELoss())
optimizer = mindspore.nn.SGD(net.trainable_params(), 0.05)
step = mindspore.nn.TrainOneStepCell(with_loss, optimizer, sens=1.0)
step.set_train()
for _ in range(3):
    for batch in train.create_dict_iterator():
        step(batch["x"], batch["y"])
