"""GradOperation whose gradient function has a name of its own, in a function."""

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


def fit(network, optimizer):
    with_loss = nn.WithLossCell(network, nn.MSELoss())
    gradient_function = ops.GradOperation(get_by_list=True, sens_param=True)(with_loss, optimizer.parameters)
    for x, y in train.create_tuple_iterator():
        sens = ops.ones_like(with_loss(x, y)) * 0.5
        gradients = gradient_function(x, y, sens)
        optimizer(gradients)


for _ in range(EPOCHS):
    fit(net, opt)
