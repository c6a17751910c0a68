"""What every step program is given: rows in a fixed order, and from the command line the mode and the batch size.

NumPy alone: no dataset and no network is built here, so there is nothing to convert.
"""

import argparse

import numpy as np

_parser = argparse.ArgumentParser()
_parser.add_argument("--device", default="CPU")
_parser.add_argument("--mode", type=int, default=1, help="0 compiles graphs, 1 runs op by op")
_parser.add_argument("--batch", type=int, default=8)
_args = _parser.parse_args()

DEVICE, MODE, BATCH = _args.device, _args.mode, _args.batch
EPOCHS = 2
_rng = np.random.default_rng(11)
X = _rng.normal(size=(32, 4)).astype(np.float32)
Y = _rng.normal(size=(32, 2)).astype(np.float32)
ROWS = {"x": X, "y": Y}
