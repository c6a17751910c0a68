"""The step of the quick start, with an evaluation of the network between the epochs."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn, ops

ms.set_context(mode=MODE, device_target=DEVICE)
ms.set_seed(1)
train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)
test = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(16)
model = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 2))
loss_fn = nn.MSELoss()
optimizer = nn.SGD(model.trainable_params(), 0.1)


def forward_fn(data, label):
    logits = model(data)
    return loss_fn(logits, label), logits


grad_fn = ms.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)


@ms.jit
def train_step(data, label):
    (loss, _), grads = grad_fn(data, label)
    loss = ops.depend(loss, optimizer(grads))
    return loss


def test_loop(model, dataset):
    model.set_train(False)
    total = 0
    for data, label in dataset.create_tuple_iterator():
        total += float(loss_fn(model(data), label).asnumpy())
    print("evaluated", total)


for _ in range(EPOCHS):
    model.set_train()
    for data, label in train.create_tuple_iterator():
        train_step(data, label)
    test_loop(model, test)
