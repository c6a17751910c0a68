"""What a conversion costs: the ratio to bare libcst, and the price of a file without MindSpore.

    python benchmarks/parse_ratio.py [--repeat N] [FILE OR FOLDER ...]

Without arguments it takes fixtures/ and programs of the shapes that real ones have, which it writes itself.
All
figures are medians of interleaved repetitions in one run, so that a slow moment of the machine meets both
sides.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import libcst as cst

from ms_distify import InputError, convert

ROOT = Path(__file__).resolve().parent.parent
TARGET = 2.5

HEAD = """\
import argparse
import os

import mindspore as ms
import mindspore.dataset as ds
import mindspore.dataset.vision as vision
from mindspore import context, nn, ops
from mindspore.train.callback import CheckpointConfig, LossMonitor, ModelCheckpoint


class Block(nn.Cell):
    \"\"\"A residual block.\"\"\"

    def __init__(self, channels, stride=1):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, stride=stride, pad_mode="pad", padding=1)
        self.norm = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()

    def construct(self, x):
        y = self.relu(self.norm(self.first(x)))
        return self.relu(x + y)
"""
DATA = """

def create_dataset(path, batch_size={batch}, training=True):
    \"\"\"Build the input pipeline.\"\"\"
    usage = "train" if training else "test"
    data = ds.Cifar10Dataset(path, usage=usage, shuffle=training)
    transforms = [vision.Resize((32, 32)), vision.Rescale(1.0 / 255.0, 0.0), vision.HWC2CHW()]
    data = data.map(operations=transforms, input_columns="image")
    return data.batch(batch_size, drop_remainder=True)
"""
HELPERS = """

def helper_{n}(values, scale={n}.5, offset=0):
    # plain code around the training, as every program has it
    total = {{"sum": 0, "count": 0, "name": f"helper {{scale:.2f}}"}}
    for index, value in enumerate(values):
        if value is None or index % 7 == 3:
            continue
        total["sum"] += (value * scale + offset) / (index + 1)
        total["count"] += 1
    return [key for key, value in total.items() if value], total["sum"] / max(1, total["count"])
"""
MODEL = """

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_path", default="./data")
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    context.set_context(mode=context.GRAPH_MODE, device_target="Ascend", device_id=0)
    train = create_dataset(os.path.join(args.data_path, "train"))
    test = create_dataset(os.path.join(args.data_path, "test"), training=False)
    net = nn.SequentialCell(Block(3), nn.Flatten(), nn.Dense(3072, 10))
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    opt = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    model = ms.Model(net, loss, opt, metrics={"accuracy"})
    model.train(args.epochs, train, callbacks=[LossMonitor()])
    print(model.eval(test))


if __name__ == "__main__":
    main()
"""
SCRIPT = """
ms.set_context(mode=ms.PYNATIVE_MODE, device_target="GPU")
train = ds.MnistDataset("./data/train", shuffle=True).batch(32, drop_remainder=True)
net = nn.SequentialCell(nn.Flatten(), nn.Dense(784, 10))
cell = nn.TrainOneStepCell(
    nn.WithLossCell(net, nn.CrossEntropyLoss()),
    nn.Adam(net.trainable_params(), learning_rate=1e-3),
)
for epoch in range(10):
    for image, label in train.create_tuple_iterator():
        loss = cell(image, label)
    print(epoch, loss)
"""


def programs() -> list[tuple[str, bytes]]:
    """Return single-file training programs of 60 to 400 lines."""
    found = []
    for count in (0, 5, 10, 30):
        helpers = "".join(HELPERS.format(n=n) for n in range(count))
        found.append((f"model_{count}.py", (HEAD + DATA.replace("{batch}", "32") + helpers + MODEL).encode()))
        found.append((f"script_{count}.py", (HEAD + helpers + SCRIPT).encode()))
    return found


def corpus(paths: list[Path]) -> list[tuple[str, bytes]]:
    """Return names and contents of the Python files named that say mindspore."""
    files = [f for path in paths for f in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    read = [(str(file), file.read_bytes()) for file in files]
    return [(name, raw) for name, raw in read if b"mindspore" in raw]


def bare(raw: bytes) -> None:
    """Read and write a file with libcst alone."""
    assert cst.parse_module(raw).bytes


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that some work takes."""
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def readable(files: list[tuple[str, bytes]]) -> tuple[list[tuple[str, bytes]], dict[str, int]]:
    """Return the files that both sides can read, and how many convert, are refused or left alone."""
    kept, outcome = [], {"converted": 0, "refused": 0, "nothing to do": 0, "unreadable": 0}
    for name, raw in files:
        try:
            bare(raw)
            result = convert(raw, name, recheck=False)
        except (InputError, cst.ParserSyntaxError):
            outcome["unreadable"] += 1
            continue
        outcome["refused" if result.refused else "converted" if result.changed else "nothing to do"] += 1
        kept.append((name, raw))
    return kept, outcome


def start_up(repeat: int) -> tuple[float, float]:
    """Return the seconds of a typer command that does nothing, and of ours on a file without MindSpore."""
    nothing = "import typer\napp = typer.Typer(add_completion=False)\n@app.command()\ndef f(x: str) -> None: ...\napp()"
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "plain.py")
        plain.write_text("print('no framework')\n" * 200)
        commands = [
            [sys.executable, "-c", nothing, str(plain)],
            [sys.executable, "-m", "ms_distify", str(plain), "--check"],
        ]
        seconds: list[list[float]] = [[], []]
        for _ in range(repeat):
            for command, times in zip(commands, seconds):
                options = {
                    "check": True,
                    "capture_output": True,
                    "env": {**os.environ, "PYTHONPATH": str(ROOT)},
                }
                times.append(timed(lambda c=command, o=options: subprocess.run(c, **o)))
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def main() -> int:
    """Print the figures; 1 if a target is missed and --strict is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--each", action="store_true", help="also print the ratio of each file")
    parser.add_argument("--strict", action="store_true", help=f"fail if the ratio is above {TARGET}")
    args = parser.parse_args()
    files, outcome = readable(corpus(args.paths) if args.paths else corpus([ROOT / "fixtures"]) + programs())
    if not files:
        print("no file that says mindspore")
        return 2
    lines = sum(raw.count(b"\n") for _, raw in files)
    floor: list[list[float]] = [[] for _ in files]
    ours: list[list[float]] = [[] for _ in files]
    for _ in range(args.repeat):
        for number, (name, raw) in enumerate(files):
            floor[number].append(timed(lambda r=raw: bare(r)))
            ours[number].append(timed(lambda r=raw, n=name: convert(r, n, recheck=False)))
    low = sum(statistics.median(times) for times in floor)
    high = sum(statistics.median(times) for times in ours)
    print(f"{len(files)} files, {lines} lines: " + ", ".join(f"{count} {word}" for word, count in outcome.items()))
    if args.each:
        for (name, _), a, b in zip(files, floor, ours):
            print(f"  {statistics.median(b) / statistics.median(a):5.2f}  {name}")
    print(f"libcst parse and write  {low:7.3f} s  {lines / low:8.0f} lines/s")
    print(f"ms_distify.convert      {high:7.3f} s  {lines / high:8.0f} lines/s")
    print(f"ratio                   {high / low:7.2f}    (target: at most {TARGET})")
    typer, command = start_up(args.repeat)
    print(f"start of typer          {typer:7.3f} s")
    print(f"file without mindspore  {command:7.3f} s  {command / typer:7.2f} times")
    return int(args.strict and high / low > TARGET)


if __name__ == "__main__":
    raise SystemExit(main())
