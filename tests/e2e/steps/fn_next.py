"""A loop over steps that asks the iterator for its next batch."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, MODE, ROWS
from mindspore import nn

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)
net = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 2))
loss_fn = nn.MSELoss()
opt = nn.Momentum(net.trainable_params(), 0.1, 0.9)


def forward(x, y):
    return loss_fn(net(x), y)


grad_fn = ms.value_and_grad(forward, None, opt.parameters)
iterator = train.create_tuple_iterator(num_epochs=1)
for step in range(train.get_dataset_size()):
    x, y = next(iterator)
    loss, grads = grad_fn(x, y)
    opt(grads)
