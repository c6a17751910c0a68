"""nn.ForwardValueAndGrad with a list of weights."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)
net = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 2))
loss_fn = nn.MSELoss()
opt = nn.Momentum(net.trainable_params(), 0.1, 0.9)

with_loss = nn.WithLossCell(net, loss_fn)
forward_backward = nn.ForwardValueAndGrad(with_loss, weights=opt.parameters, get_by_list=True)

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        loss, grads = forward_backward(x, y)
        opt(grads)
