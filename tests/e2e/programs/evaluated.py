"""Evaluations by Model.eval and by hand, of 25 rows in other numbers of batches, and a stop on the training loss."""

import argparse
import json

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="CPU")
args = parser.parse_args()
ms.set_context(mode=ms.PYNATIVE_MODE, device_target=args.device)
ms.set_seed(5)


class Rows:
    def __init__(self, number, seed):
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(number, 4)).astype(np.float32)
        self.y = rng.integers(0, 3, size=number).astype(np.int32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


class Patience:
    def __init__(self, patience):
        self.best, self.waited, self.patience, self.stop = 9.0, 0, patience, False

    def __call__(self, loss):
        if loss < self.best - 0.02:
            self.best, self.waited = loss, 0
        else:
            self.waited += 1
            if self.waited >= self.patience:
                self.stop = True


def evaluate(net, data, loss_fn):
    net.set_train(False)
    correct, total, loss = 0, 0, 0.0
    for i, (x, y) in enumerate(data.create_tuple_iterator(num_epochs=1)):
        logits = net(x)
        correct += (logits.argmax(1) == y).astype(ms.int32).sum()
        total += len(y)
        loss += loss_fn(logits, y).asnumpy() * len(y)
    return int(correct), total, float(loss / total)


train = ds.GeneratorDataset(Rows(48, 0), ["x", "y"], shuffle=False).batch(8, drop_remainder=True)
test = ds.GeneratorDataset(Rows(25, 1), ["x", "y"])  # shuffled, as it is by default
test = test.map(lambda x: x * np.float32(2), ["x"]).batch(4)
one_batch = ds.NumpySlicesDataset((Rows(25, 1).x, Rows(25, 1).y), ["x", "y"], shuffle=False).batch(25)
net = nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 3))
loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.SGD(net.trainable_params(), 0.1)
model = ms.Model(net, loss_fn, metrics={"acc", "loss", "top_1_accuracy"})
by_object = ms.Model(net, loss_fn, metrics={"right": nn.Accuracy(), "top": nn.Top1CategoricalAccuracy()})
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)

results = {
    "hand": evaluate(net, test, loss_fn),
    "hand, one batch": evaluate(net, one_batch, loss_fn),
    "model": model.eval(test),
    "model again": model.eval(test),
    "model, one batch": by_object.eval(one_batch),
}
patience = Patience(2)
own = []
for epoch in range(40):
    net.set_train()
    total, steps = 0.0, 0
    for x, y in train.create_tuple_iterator():
        loss, grads = grad_fn(x, y)
        optimizer(grads)
        total += float(loss)
        steps += 1
    average = total / steps
    own.append(total / steps)
    patience(average)
    if patience.stop:
        break
results["stopped"] = epoch
results["own"] = own
print("RESULTS " + json.dumps(results), flush=True)
