"""An optimizer of mint."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import mint, nn

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)
net = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 2))
loss_fn = nn.MSELoss()


def forward(x, y):
    return loss_fn(net(x), y)


optimizer = mint.optim.SGD(net.trainable_params(), lr=0.1)
grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        loss, grads = grad_fn(x, y)
        optimizer(grads)
