from mindspore import nn


def build():
    return nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 2))
