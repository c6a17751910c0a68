"""The differentiated function is a WithLossCell; rows come as dictionaries."""

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
grad_fn = ops.value_and_grad(with_loss, grad_position=None, weights=opt.parameters)
for _ in range(EPOCHS):
    for batch in train.create_dict_iterator():
        loss, grads = grad_fn(batch["x"], batch["y"])
        opt(grads)
