"""A loop over nn.TrainOneStepCell."""

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

step = nn.TrainOneStepCell(nn.WithLossCell(net, loss_fn), opt)
step.set_train()

for _ in range(EPOCHS):
    for x, y in train.create_tuple_iterator():
        step(x, y)
