"""Evaluates what train.py saved, with the same modules."""

import sys

import mindspore as ms
from mindspore import nn
from src.data import create_dataset
from src.net import build

if __name__ == "__main__":
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target=sys.argv[1])
    net = build()
    ms.load_param_into_net(net, ms.load_checkpoint("net.ckpt"))
    model = ms.Model(net, nn.MSELoss(), metrics={"loss": nn.Loss()})
    print("evaluated", model.eval(create_dataset("test", 5), dataset_sink_mode=False))
