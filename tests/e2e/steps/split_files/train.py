"""The step is made in another file than the optimizer and the loop."""

import mindspore as ms
import mindspore.dataset as ds
from given import BATCH, DEVICE, EPOCHS, MODE, ROWS
from mindspore import nn
from split_stepping import make_step


def main():
    ms.set_context(mode=MODE, device_target=DEVICE)
    ms.set_seed(1)
    train = ds.NumpySlicesDataset(ROWS, shuffle=False).batch(BATCH, drop_remainder=True)
    net = nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 2))
    opt = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    step = make_step(net, nn.MSELoss(), opt)
    for _ in range(EPOCHS):
        for x, y in train.create_tuple_iterator():
            step(x, y)


if __name__ == "__main__":
    main()
