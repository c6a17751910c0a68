"""Writes files in every way that is converted: what each is for, the tests beside say."""

import argparse
import json
import logging
import os
import shutil
import time

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.mindrecord import FileWriter

parser = argparse.ArgumentParser()
parser.add_argument("--slow", type=float, default=0)
parser.add_argument("--resume", default="")
args = parser.parse_args()

OUT = "out"
if os.path.exists(OUT) and not args.resume:
    shutil.rmtree(OUT)
os.makedirs(OUT, exist_ok=True)
if not os.path.isdir("marks"):
    os.mkdir("marks")
logging.basicConfig(filename="run.log", level=logging.INFO)


def prepare(path):
    """Takes a while and leaves half a file in place until it is done."""
    writer = FileWriter(path, 1, overwrite=True)
    writer.add_schema({"x": {"type": "float32", "shape": [4]}, "y": {"type": "float32", "shape": [2]}})
    for row in range(16):
        x = np.arange(row, row + 4, dtype=np.float32) / 20
        writer.write_raw_data([{"x": x, "y": x[:2]}])
    time.sleep(args.slow)
    writer.commit()


if not os.path.exists("train.mindrecord.db"):
    prepare("train.mindrecord")


if os.path.exists("cache.json"):
    with open("cache.json") as cache:
        table = json.load(cache)
    how = "found"
else:
    table = [0.5, 1.5]
    with open("cache.json", "w") as cache:
        cache.write("[0.5,")
        cache.flush()
        time.sleep(args.slow / 4)
        cache.write("1.5]")
    how = "made"
print(f"the cache of {len(table)} is {how}")
RUN = os.path.join("runs", f"{time.time()}")
os.makedirs(RUN)


class Evaluate(ms.Callback):
    """Keeps the best weights; computes on every rank, writes on one."""

    def __init__(self, model, data):
        super().__init__()
        self.model, self.data, self.best = model, data, 1e9

    def epoch_end(self, context):
        loss = self.model.eval(self.data, dataset_sink_mode=False)["loss"]
        with open(os.path.join(OUT, "losses.txt"), "a") as out:
            out.write(f"{loss}\n")
        if loss < self.best:
            self.best = loss
            ms.save_checkpoint(self.model.train_network, os.path.join(OUT, "best.ckpt"))


ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
ms.set_seed(1)
train = ds.MindDataset("train.mindrecord", shuffle=False).batch(4, drop_remainder=True)
test = ds.MindDataset("train.mindrecord", shuffle=False).batch(4)
net = nn.Dense(4, 2)
if args.resume:
    ms.load_param_into_net(net, ms.load_checkpoint(args.resume))
loss = nn.MSELoss()
model = ms.Model(net, loss, nn.Momentum(net.trainable_params(), 0.05, 0.9), metrics={"loss": nn.Loss()})
config = ms.CheckpointConfig(save_checkpoint_steps=1, keep_checkpoint_max=2)
saved = ms.ModelCheckpoint(prefix="net", directory=OUT, config=config)
model.train(2, train, callbacks=[saved, Evaluate(model, test)], dataset_sink_mode=False)
ms.save_checkpoint(net, os.path.join(OUT, "last.ckpt"))
ms.export(net, ms.Tensor(np.zeros((1, 4), np.float32)), file_name=os.path.join(OUT, "net"), file_format="MINDIR")
np.save(os.path.join(OUT, "weights.npy"), net.weight.asnumpy())
weights = np.load(os.path.join(OUT, "weights.npy"))
best = ms.load_checkpoint(os.path.join(OUT, "best.ckpt"))
ms.load_param_into_net(net, best)
ms.save_checkpoint(net, os.path.join(RUN, "best.ckpt"))
ms.load_param_into_net(net, ms.load_checkpoint(os.path.join(RUN, "best.ckpt")))
logging.info("the end")
with open("seen" + os.getenv("RANK_ID", "") + ".json", "w") as out:
    json.dump({"weights": weights.tolist(), "best": net.weight.asnumpy().tolist()}, out)
