"""The train cell stands in another file than the program that trains with it."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn
from split_cells import LossCell, TrainStep

if __name__ == "__main__":
    ms.set_context(mode=MODE, device_target=DEVICE)
    ms.set_seed(1)
    train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)
    net = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 2))
    step = TrainStep(LossCell(net), nn.SGD(net.trainable_params(), 0.1))
    step.set_train()
    for _ in range(EPOCHS):
        for x, y in train.create_tuple_iterator():
            step(x, y)
