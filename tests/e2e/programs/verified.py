"""What faults are planted into: a sampler, clipping, two optimizers, an evaluation and a checkpoint."""

import argparse

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="CPU")
parser.add_argument("--batch", type=int, default=4)
args = parser.parse_args()
ms.set_context(mode=ms.PYNATIVE_MODE, device_target=args.device)
ms.set_seed(5)


def rows(count, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 4)).astype(np.float32)
    return x, (x[:, :2] * 3).astype(np.float32)


train_set = ds.NumpySlicesDataset(rows(64, 0), ["x", "y"], sampler=ds.SubsetSampler(list(range(48))))
train_set = train_set.batch(args.batch, drop_remainder=True)
test_set = ds.NumpySlicesDataset(rows(10, 1), ["x", "y"], shuffle=False).batch(5)
body, head = nn.Dense(4, 8), nn.Dense(8, 2, has_bias=False)
loss_fn = nn.MSELoss()
body_optimizer = nn.SGD(body.trainable_params(), 0.05)
head_optimizer = nn.Momentum(head.trainable_params(), 0.05, 0.9)


def forward(x, y):
    return loss_fn(head(ops.tanh(body(x))), y)


body_grad = ms.value_and_grad(forward, None, body_optimizer.parameters)
head_grad = ms.value_and_grad(forward, None, head_optimizer.parameters)
for epoch in range(2):
    for x, y in train_set.create_tuple_iterator(num_epochs=1):
        loss, body_grads = body_grad(x, y)
        _, head_grads = head_grad(x, y)
        body_grads = ops.clip_by_global_norm(body_grads, 0.3)
        body_optimizer(body_grads)
        head_optimizer(head_grads)
    wrong = 0.0
    for x, y in test_set.create_tuple_iterator(num_epochs=1):
        wrong += float(forward(x, y).asnumpy())
    print(f"epoch {epoch}: {wrong:.4f}")
ms.save_checkpoint(body, "body.ckpt")
