"""One gradient call for the weights of two optimizers; each gets its part."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)

body, head = nn.Dense(4, 5), nn.Dense(5, 2)
network = nn.SequentialCell(body, nn.Tanh(), head)
opt_body = nn.SGD(body.trainable_params(), 0.1)
opt_head = nn.SGD(head.trainable_params(), 0.2)
weights = body.trainable_params() + head.trainable_params()


def forward(x, y):
    return ((network(x) - y) ** 2).mean()


grad_fn = ms.value_and_grad(forward, None, weights)

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        loss, grads = grad_fn(x, y)
        opt_body(grads[:2])
        opt_head(grads[2:])
