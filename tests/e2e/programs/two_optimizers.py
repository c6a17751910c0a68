"""Two networks against each other, two optimizers, one of them fed over accumulated micro-steps."""

import argparse

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops


def main(args):
    rng = np.random.default_rng(1)
    number = np.arange(64, dtype=np.float32).reshape(-1, 1)
    x = np.concatenate([number / 64, rng.normal(size=(64, 3)).astype(np.float32)], axis=1)
    train_set = ds.NumpySlicesDataset(x, ["x"], shuffle=False).batch(args.batch, drop_remainder=True)
    generator, critic = nn.Dense(4, 4), nn.SequentialCell(nn.Dense(4, 4), nn.Tanh(), nn.Dense(4, 1))
    optimizer_g = nn.Adam(generator.trainable_params(), 0.01)
    optimizer_c = nn.SGD(critic.trainable_params(), 0.05)

    def loss_g(x):
        return -critic(generator(x)).mean()

    def loss_c(x):
        return critic(generator(x)).mean() - critic(x).mean() + (critic(x) ** 2).mean()

    grad_g = ms.value_and_grad(loss_g, None, generator.trainable_params())
    grad_c = ms.value_and_grad(loss_c, None, critic.trainable_params())
    held = None
    for _ in range(3):
        for step, (x,) in enumerate(train_set.create_tuple_iterator()):
            _, grads = grad_c(x)
            grads = ops.clip_by_value(grads, ms.Tensor(-0.1), ms.Tensor(0.1))
            optimizer_c(grads)
            _, grads = grad_g(x)
            held = grads if held is None else [a + b for a, b in zip(held, grads)]
            if step % 2 == 1:
                optimizer_g(tuple(held))
                held = None


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--batch", type=int, default=8)
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target=parser.parse_args().device)
    ms.set_seed(3)
    main(parser.parse_args())
