"""Learning rates of every form: a table of steps, a schedule, and a number with groups that have one of their own."""

import argparse
import json

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="CPU")
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--lr", type=float, default=0.05)
args = parser.parse_args()
ms.set_context(mode=ms.GRAPH_MODE, device_target=args.device)
ms.set_seed(1)

rng = np.random.default_rng(1)
rows = rng.normal(size=(32, 4)).astype(np.float32), rng.normal(size=(32, 2)).astype(np.float32)


def data():
    return ds.NumpySlicesDataset(rows, ["x", "y"], shuffle=False).batch(args.batch, drop_remainder=True)


class Show(ms.Callback):
    """Shows with which rate the next step is taken."""

    def __init__(self, form, optimizer):
        super().__init__()
        self.form, self.optimizer = form, optimizer

    def step_begin(self, run_context):
        rates = self.optimizer.get_lr()
        rates = rates if isinstance(rates, (list, tuple)) else [rates]
        print("rate", json.dumps([self.form, *(round(float(rate.asnumpy().reshape(-1)[0]), 6) for rate in rates)]))


def optimizer_of(form, net, train):
    if form == "table":
        return nn.Momentum(net.trainable_params(), nn.cosine_decay_lr(0.0, args.lr, 40, 4, 10), 0.9)
    if form == "schedule":
        return nn.SGD(net.trainable_params(), learning_rate=nn.ExponentialDecayLR(args.lr, 0.9, 4))
    groups = [{"params": [net.weight], "lr": 0.1 * args.lr}, {"params": [net.bias]}]
    return nn.SGD(groups, args.lr)


for form in ("table", "schedule", "groups"):
    net, train = nn.Dense(4, 2), data()
    optimizer = optimizer_of(form, net, train)
    model = ms.Model(net, nn.MSELoss(), optimizer)
    model.train(3, train, callbacks=[Show(form, optimizer)], dataset_sink_mode=False)
