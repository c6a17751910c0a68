"""MSD104: one seed, the same on every rank, before the first Cell."""

from __future__ import annotations

import pytest
from support import CHANGED, HEAD, KEPT, NOTED, TRAINING, changed_lines, converted, found, refused, run

from ms_distify import Settings

DATA = 'train = ds.MnistDataset("/d").batch(8, drop_remainder=True)\n'
ARGS = "import argparse\nargs = argparse.ArgumentParser().parse_args()\n"


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param("ms.set_seed(1)", id="C31 fixed"),
        pytest.param("ms.set_seed(args.seed)", id="argument"),
        pytest.param("ms.common.set_seed(1)", id="mindspore.common"),
        pytest.param("def fix(n):\n    ms.set_seed(n)\nfix(3)", id="in a function"),
        pytest.param("with open('x') as f:\n    ms.set_seed(1)", id="in a with block"),
        pytest.param("ms.set_seed(1); epochs = 2", id="semicolons"),
    ],
)
def test_good_seed_is_kept(seed: str) -> None:
    result = run(HEAD + ARGS + seed + "\n" + DATA + TRAINING)
    assert [status for status, _ in found(result, "MSD104")] == [KEPT]
    assert result.output.decode().count("set_seed") == seed.count("set_seed")


def test_seed_between_dataset_and_network_is_in_time() -> None:
    result = run(HEAD + DATA + "ms.set_seed(1)\n" + TRAINING)
    assert found(result, "MSD104") == [(KEPT, 5)]


def test_seed_in_the_branch_that_trains() -> None:
    branch = "if args.train:\n    ms.set_seed(1)\n" + "".join("    " + s + "\n" for s in (DATA + TRAINING).splitlines())
    assert found(run(HEAD + ARGS + branch), "MSD104") == [(KEPT, 7)]


def test_added() -> None:
    _, new = changed_lines(HEAD + "ms.set_context(mode=0)\n" + DATA + TRAINING)
    assert new.count("ms.set_seed(0)") == 1


def test_the_number_is_the_users_choice() -> None:
    output = converted(HEAD + DATA + TRAINING, settings=Settings(seed=42))
    assert "\nms.set_seed(42)\n" in output


def test_c31_below_the_network() -> None:
    """A warning, and a seed above the network: broadcast alone does nothing for hand-written steps (FACTS 3)."""
    net, rest = TRAINING.split("\n", 1)
    result = run(HEAD + "ms.set_context(mode=0)\n" + DATA + net + "\nms.set_seed(1)\n" + rest)
    assert found(result, "MSD104") == [(CHANGED, 4), (NOTED, 7)]
    output = result.output.decode()
    assert output.index("ms.set_seed(0)") < output.index("nn.Dense") < output.index("ms.set_seed(1)")


@pytest.mark.parametrize(
    ("above", "line"),
    [
        pytest.param("import numpy as np\nnp.random.seed(58)\n", "np.random.seed(58)", id="NumPy"),
        pytest.param("ds.config.set_seed(5)\n", "ds.config.set_seed(5)", id="datasets"),
        pytest.param(ARGS + "if args.seed:\n    ms.set_seed(args.seed)\n", "if args.seed:", id="conditional"),
        pytest.param(
            "import numpy as np\ndef fix():\n    np.random.seed(58)\nfix()\n",
            "fix()",
            id="NumPy, in a function",
        ),
    ],
)
def test_goes_in_front_of_other_seeds(above: str, line: str) -> None:
    """`set_seed` seeds NumPy and the datasets too: behind their seeds it would change the one-card run."""
    output = converted(HEAD + above + "ms.set_context(mode=0)\n" + DATA + TRAINING)
    assert f"\nms.set_seed(0)\n{line}\n" in output


def test_numpy_seed_below_stays_behind() -> None:
    output = converted(HEAD + "import numpy as np\nms.set_context(mode=0)\n" + DATA + "np.random.seed(58)\n" + TRAINING)
    assert output.index("ms.set_seed(0)") < output.index(DATA[:20]) < output.index("np.random.seed(58)")


def test_seed_does_not_depend_on_the_users_condition() -> None:
    init = "from mindspore.communication import init\nif args.distribute:\n    init()\n"
    output = converted(HEAD + ARGS + init + DATA + TRAINING)
    assert "ms.set_seed(0)\nif args.distribute:\n" in output


@pytest.mark.parametrize(
    ("seed", "line", "reason"),
    [
        pytest.param("import os, time\nms.set_seed(int(time.time()) + os.getpid())", 5, "time.time", id="C31"),
        pytest.param("import os\nms.set_seed(os.getpid())", 5, "os.getpid", id="process"),
        pytest.param(
            "import secrets\nseed = secrets.randbelow(9)\nms.set_seed(seed)",
            6,
            "secrets.randbelow",
            id="variable",
        ),
        pytest.param(
            "from mindspore.communication import init, get_rank\ninit()\nms.set_seed(1 + get_rank())",
            6,
            "get_rank",
            id="rank",
        ),
        pytest.param('import os\nms.set_seed(int(os.getenv("RANK_ID", "0")))', 5, "RANK_ID", id="environment"),
        pytest.param(
            "import time\ndef fix(n):\n    ms.set_seed(n)\nfix(int(time.time()))",
            6,
            "time.time",
            id="parameter",
        ),
    ],
)
def test_seed_of_the_rank_is_refused(seed: str, line: int, reason: str) -> None:
    result = refused(HEAD + seed + "\n" + DATA + TRAINING, "MSD104", line, reason)
    assert len(found(result, "MSD104")) == 1, "no second seed is offered beside it"


@pytest.mark.parametrize(
    ("line", "number"),
    [
        pytest.param("rng = np.random.default_rng()", 5, id="default_rng"),
        pytest.param("rng = np.random.RandomState(None)", 5, id="RandomState of None"),
    ],
)
def test_generators_without_a_seed_are_refused(line: str, number: int) -> None:
    """Rows picked with such a generator overlap between ranks."""
    data = 'ms.set_context(mode=0)\ntrain = ds.MnistDataset("/d").batch(8)\n'
    program = HEAD.replace("from mindspore", "import numpy as np\nfrom mindspore", 1) + line + "\n" + data + TRAINING
    refused(program, "MSD104", number, "without a seed")
    converted(program.replace("default_rng()", "default_rng(3)").replace("RandomState(None)", "RandomState(3)"))
