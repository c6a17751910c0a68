"""The step of MindSpore's quick start: a compiled function inside a training function, no context call, no seed needed."""

import argparse

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.dataset import NumpySlicesDataset


def train_loop(model, dataset, loss_fn, optimizer):
    def forward_fn(data, label):
        logits = model(data)
        loss = loss_fn(logits, label)
        return loss, logits

    grad_fn = ops.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)

    @ms.jit
    def train_step(data, label):
        (loss, _), grads = grad_fn(data, label)
        loss = ops.depend(loss, optimizer(grads))
        return loss

    model.set_train()
    for data, label in dataset.create_tuple_iterator():
        loss = train_step(data, label)
    print("loss", float(loss.asnumpy()))


def make(rows, batch):
    rng = np.random.default_rng(rows)
    number = np.arange(rows, dtype=np.float32).reshape(-1, 1)
    x = np.concatenate([number / rows, rng.normal(size=(rows, 3)).astype(np.float32)], axis=1)
    y = rng.integers(0, 2, size=rows).astype(np.int32)
    return NumpySlicesDataset((x, y), ["x", "y"], shuffle=False).batch(batch)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--batch", type=int, default=8)
    args = parser.parse_args()
    ms.set_device(args.device)
    ms.set_seed(2)
    train_dataset = make(64, args.batch)
    test_dataset = make(25, 5)
    model = nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 2))
    loss_fn = nn.CrossEntropyLoss()
    optimizer = nn.SGD(model.trainable_params(), 0.05)
    for _ in range(3):
        train_loop(model, train_dataset, loss_fn, optimizer)
        for data, label in test_dataset.create_tuple_iterator():
            model(data)
