"""Trains twice: with a trainer that keeps its datasets, then with Model.train; saves the network at the end."""

import argparse

import mindspore as ms
from mindspore import nn
from src.data import create_dataset
from src.net import build
from src.trainer import Trainer

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="CPU")
parser.add_argument("--batch", type=int, default=8)
args = parser.parse_args()


def main():
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target=args.device)
    ms.set_seed(3)
    net = build()
    trainer = Trainer(net, args)
    for epoch in range(2):
        trainer.train_epoch()
        print("epoch", epoch, "loss", trainer.evaluate())
    optimizer = nn.SGD(net.trainable_params(), 0.05)
    model = ms.Model(net, nn.MSELoss(), optimizer, metrics={"loss": nn.Loss()})
    model.train(1, create_dataset("train", args.batch), dataset_sink_mode=False)
    print("evaluated", model.eval(create_dataset("test", 5), dataset_sink_mode=False))
    ms.save_checkpoint(net, "net.ckpt")


if __name__ == "__main__":
    main()
