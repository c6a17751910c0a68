"""The differentiated function is a lambda, the optimizer Adam."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)
net = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 2))
loss_fn = nn.MSELoss()

adam = nn.Adam(net.trainable_params(), 0.01)
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, adam.parameters)

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        loss, grads = grad_fn(x, y)
        adam(grads)
