"""The gradient function is handed to the function that trains."""

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


def forward(x, y):
    out = net(x)
    return loss_fn(out, y), out


def fit(model, loader, optimizer, grad_fn):
    model.set_train()
    for data in loader.create_dict_iterator():
        (_, _), grads = grad_fn(data["x"], data["y"])
        optimizer(grads)


gradient = ms.value_and_grad(forward, None, opt.parameters, has_aux=True)
for _ in range(EPOCHS):
    fit(net, train, opt, gradient)
