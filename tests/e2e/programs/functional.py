"""value_and_grad in PyNative mode, with auxiliary output and clipping by global norm."""

import argparse

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="CPU")
parser.add_argument("--batch", type=int, default=8)
args = parser.parse_args()
ms.set_context(mode=ms.PYNATIVE_MODE, device_target=args.device)
ms.set_seed(5)


def rows():
    rng = np.random.default_rng(0)
    number = np.arange(64, dtype=np.float32).reshape(-1, 1)
    x = np.concatenate([number / 64, rng.normal(size=(64, 3)).astype(np.float32)], axis=1)
    return x, rng.normal(size=(64, 2)).astype(np.float32)


train_set = ds.NumpySlicesDataset(rows(), ["x", "y"], shuffle=False)
train_set = train_set.batch(args.batch, drop_remainder=True)
net = nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 2))
loss_fn = nn.MSELoss()
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)


def forward(x, y):
    logits = net(x)
    return loss_fn(logits, y), logits


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
for _ in range(3):
    for x, y in train_set.create_tuple_iterator():
        (loss, _), grads = grad_fn(x, y)
        grads = ops.clip_by_global_norm(grads, 0.3)
        optimizer(grads)
