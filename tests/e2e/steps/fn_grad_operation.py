"""GradOperation outside any cell."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn, ops

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)
net = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 2))
loss_fn = nn.MSELoss()
opt = nn.Momentum(net.trainable_params(), 0.1, 0.9)

with_loss = nn.WithLossCell(net, loss_fn)
weights = ms.ParameterTuple(net.trainable_params())
grad_op = ops.GradOperation(get_by_list=True)

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        grads = grad_op(with_loss, weights)(x, y)
        opt(grads)
