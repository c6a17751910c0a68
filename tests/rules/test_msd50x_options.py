"""The options that change numbers: --global-batch, --scale-lr, --quiet-ranks."""

from __future__ import annotations

import pytest
from support import CHANGED, HEAD, KEPT, NOTED, REFUSED, TRAINING, converted, found, run

from ms_distify import Conversion, Settings

KEEP = Settings(global_batch="keep")
LINEAR = Settings(scale_lr="linear")
WARM = Settings(scale_lr="linear", warmup_epochs=2)
QUIET = Settings(quiet_ranks=True)
CONTEXT = "ms.set_context(mode=0)\n"
BATCH = 'train = ds.MnistDataset("/d").batch(32, drop_remainder=True)\n'


def added(source: str, settings: Settings, word: str) -> list[str]:
    """Return the lines of the output with a word, without those of our helpers."""
    lines = converted(source, settings=settings).splitlines()
    return [line.strip() for line in lines if word in line and not line.startswith("def ")]


def refusal(source: str, settings: Settings, code: str) -> str:
    result = run(source, settings=settings)
    return " | ".join(f"{f.line}: {f.message}" for f in result.findings if f.code == code and f.status == REFUSED)


def statuses(result: Conversion, code: str) -> list[str]:
    return [status for status, _ in found(result, code)]


# -- the global batch ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [Settings(), LINEAR, QUIET])
def test_batches_are_left_alone_unless_it_is_asked_for(settings: Settings) -> None:
    assert "batch_per_rank" not in converted(HEAD + CONTEXT + BATCH + TRAINING, settings=settings)


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        pytest.param(BATCH, ["batch(batch_per_rank(32, rank_size), drop_remainder=True)"], id="literal"),
        pytest.param('train = ds.MnistDataset("/d")\ntrain = train.batch(batch_size=8)\n',
                     ["batch(batch_size=batch_per_rank(8, rank_size))"], id="keyword"),
        pytest.param('train = ds.MnistDataset("/d").padded_batch(8, True)\n',
                     ["padded_batch(batch_per_rank(8, rank_size), True)"], id="padded"),
        pytest.param('train = ds.MnistDataset("/d").batch(4).batch(8)\n',
                     ["batch(4).batch(batch_per_rank(8, rank_size))"], id="the last of two"),
        pytest.param('def make(n):\n    return ds.MnistDataset("/d").batch(n)\n'
                     "train = make(8)\ntest = make(5)\nms.Model(nn.Dense(1, 1)).eval(test)\n",
                     ["batch(batch_per_rank(n, num_shards))"], id="for both roles"),
        pytest.param('def batched(data, n):\n    return data.batch(n)\ntrain = batched(ds.MnistDataset("/d"), 8)\n',
                     ["return data.batch(batch_per_rank(n, num_shards))"], id="a function that only batches"),
    ],
)  # fmt: skip
def test_the_batch_is_divided(data: str, lines: list[str]) -> None:
    got = added(HEAD + CONTEXT + data + TRAINING, KEEP, "batch_per_rank(")
    assert len(got) == len(lines)
    assert all(line.split(" = ")[-1].endswith(want) or want in line for line, want in zip(got, lines)), got


def test_evaluation_keeps_its_batch_where_one_function_builds_both() -> None:
    source = HEAD + CONTEXT + 'def make(n):\n    return ds.MnistDataset("/d").batch(n)\ntrain = make(8)\n' + TRAINING
    output = converted(source + "model.eval(make(5))\n", settings=KEEP)
    assert "train = make(8, num_shards=rank_size, shard_id=rank_id)" in output
    assert "model.eval(make(5))" in output


def test_a_divided_batch_is_kept_whatever_is_asked_for_later() -> None:
    once = converted(HEAD + CONTEXT + BATCH + TRAINING, settings=KEEP)
    for settings in (Settings(), KEEP):
        again = run(once, settings=settings)
        assert not again.changed
        assert statuses(again, "MSD501") == [KEPT]
    assert "nothing to scale for" in refusal(once, LINEAR, "MSD506")


def test_a_batch_that_the_program_divides_is_kept() -> None:
    size = "from mindspore.communication import get_group_size\n"
    source = HEAD + size + CONTEXT + BATCH.replace("32", "64 // get_group_size()") + TRAINING
    assert statuses(run(source, settings=KEEP), "MSD501") == [KEPT]
    assert statuses(run(source.replace("//", "+"), settings=KEEP), "MSD501") == [CHANGED]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param('train = ds.MnistDataset("/d")\n', "no batch() is found", id="no batch"),
        pytest.param(
            'size = lambda info: 4\ntrain = ds.MnistDataset("/d").batch(size)\n', "is a function", id="callable"
        ),
        pytest.param(
            'how = dict(batch_size=4)\ntrain = ds.MnistDataset("/d").batch(**how)\n', "write it out", id="stars"
        ),
    ],
)
def test_batches_that_cannot_be_divided_are_refused(data: str, says: str) -> None:
    assert says in refusal(HEAD + CONTEXT + data + TRAINING, KEEP, "MSD501")


def test_what_else_reads_the_batch_size_is_named() -> None:
    sized = "SIZE = 32\nprint(SIZE)\nsteps = 60000 // SIZE\n" + BATCH.replace("32", "SIZE")
    result = run(HEAD + CONTEXT + sized + TRAINING, settings=KEEP)
    assert ("noted", 7) in found(result, "MSD501"), "the count of steps"
    assert all(line != 6 for _, line in found(result, "MSD501")), "what is printed does no harm"
    net = "class Net(nn.Cell):\n    def __init__(self, rows):\n        super().__init__()\n        self.rows = rows\n"
    built = refusal(HEAD + CONTEXT + net + sized + "own = Net(SIZE)\n" + TRAINING, KEEP, "MSD501")
    assert "a Cell is built with SIZE" in built
    net = net.replace("rows", "batch_size")
    for call in ("Net(32)", "Net(batch_size=32)"):
        built = refusal(HEAD + CONTEXT + net + BATCH + f"own = {call}\n" + TRAINING, KEEP, "MSD501")
        assert "a Cell is built with batch_size=32, the batch by its name" in built
    converted(HEAD + CONTEXT + net + BATCH + "own = Net(16)\n" + TRAINING, settings=KEEP)
    converted(HEAD + CONTEXT + net.replace("batch_size", "width") + BATCH + "own = Net(32)\n" + TRAINING, settings=KEEP)


def test_steps_stay_those_of_one_card_with_the_batch() -> None:
    source = HEAD + CONTEXT + BATCH + "lr = nn.WarmUpLR(0.1, 500)\n" + TRAINING
    assert statuses(run(source), "MSD502") == [NOTED]
    assert statuses(run(source, settings=KEEP), "MSD502") == [KEPT]


# -- the learning rate -----------------------------------------------------------------------------------------------------

RUN = "model = ms.Model(net, nn.MSELoss(), opt)\nmodel.train(1, train)\n"


def with_optimizer(text: str, data: str = BATCH) -> str:
    return HEAD + CONTEXT + data + "net = nn.Dense(4, 2)\n" + text + "\n" + RUN


@pytest.mark.parametrize("settings", [Settings(), KEEP, QUIET])
def test_rates_are_left_alone_unless_it_is_asked_for(settings: Settings) -> None:
    source = with_optimizer("opt = nn.SGD(net.trainable_params(), 0.1)")
    assert "scale_learning_rate" not in converted(source, settings=settings)


@pytest.mark.parametrize(
    ("optimizer", "want"),
    [
        pytest.param("nn.Momentum(net.trainable_params(), 0.1, 0.9)",
                     "net.trainable_params(), scale_learning_rate(0.1, rank_size), 0.9)", id="position"),
        pytest.param("nn.Adam(net.trainable_params(), learning_rate=lr)",
                     "learning_rate=scale_learning_rate(lr, rank_size))", id="keyword"),
        pytest.param("nn.FTRL(net.trainable_params(), 0.1, 0.02)",
                     "0.1, scale_learning_rate(0.02, rank_size))", id="the third of FTRL"),
        pytest.param("nn.RMSProp(net.trainable_params())",
                     "learning_rate=scale_learning_rate(0.1, rank_size))", id="default"),
        pytest.param("ms.experimental.optim.SGD(net.trainable_params(), lr=0.1)",
                     "lr=scale_learning_rate(0.1, rank_size))", id="lr"),
    ],
)  # fmt: skip
def test_the_rate_is_multiplied_where_it_is_handed_over(optimizer: str, want: str) -> None:
    got = added(with_optimizer(f"lr = 0.1\nopt = {optimizer}"), LINEAR, "scale_learning_rate(")
    assert len(got) == 1
    assert got[0].endswith(want)


def test_groups_with_a_rate_of_their_own_are_scaled() -> None:
    source = with_optimizer('opt = nn.SGD([{"params": net.trainable_params(), "lr": 0.2}], 0.1)')
    (line,) = added(source, LINEAR, "scale_learning_rate(")
    assert '"lr": scale_learning_rate(0.2, rank_size)' in line
    assert line.endswith("], scale_learning_rate(0.1, rank_size))")


def test_an_optimizer_of_the_program_is_scaled_once_where_it_is_built() -> None:
    own = (
        "class Own(nn.Momentum):\n    def __init__(self, params, rate):\n        super().__init__(params, rate, 0.9)\n"
    )
    assert added(with_optimizer(own + "opt = Own(net.trainable_params(), 0.1)"), LINEAR, "scale_learning_rate(") == [
        "opt = Own(net.trainable_params(), scale_learning_rate(0.1, rank_size))"
    ]


@pytest.mark.parametrize(
    "value",
    [
        "0.1 * get_group_size()",
        "nn.cosine_decay_lr(0.0, 0.1 * get_group_size(), 9, 3, 3)",
        "np.array([0.1 * get_group_size()] * 9).astype(np.float32)[3:].tolist()",
    ],
)
def test_a_rate_that_the_program_scales_is_not_scaled_again(value: str) -> None:
    size = "import numpy as np\nfrom mindspore.communication import get_group_size\n"
    source = with_optimizer(f"lr = {value}\nopt = nn.SGD(net.trainable_params(), lr)")
    result = run(source.replace("from mindspore import", size + "from mindspore import"), settings=LINEAR)
    assert statuses(result, "MSD506") == [KEPT]


SIZED = "import numpy as np\nfrom mindspore.communication import get_group_size\nfrom mindspore import"


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("nn.cosine_decay_lr(0.0, 0.1, 9 * get_group_size(), 3, 3)", id="steps of a schedule"),
        pytest.param("np.linspace(0.1, 0.0, 9 * get_group_size()).tolist()", id="argument of a library's function"),
    ],
)
def test_a_rate_of_which_something_is_scaled_is_refused(value: str) -> None:
    """It may be the count of steps, and then the rate would stay as it is, against what is asked for."""
    source = with_optimizer(f"lr = {value}\nopt = nn.SGD(net.trainable_params(), lr)")
    source = source.replace("from mindspore import", SIZED, 1)
    assert statuses(run(source, settings=LINEAR), "MSD506") == [REFUSED]
    assert statuses(run(source), "MSD506") == [KEPT], "without the option it is the program's own affair"


def test_a_table_that_is_longer_on_more_ranks_is_scaled() -> None:
    table = "def rates(rate, count):\n    return [rate] * count\n\n\nlr = rates(0.1, 9 * get_group_size())\n"
    source = with_optimizer(table + "opt = nn.SGD(net.trainable_params(), lr)").replace(
        "from mindspore import", SIZED, 1
    )
    assert statuses(run(source, settings=LINEAR), "MSD506") == [CHANGED]


@pytest.mark.parametrize("settings", [LINEAR, WARM])
def test_a_scaled_rate_is_kept_whatever_is_asked_for_later(settings: Settings) -> None:
    once = converted(with_optimizer("opt = nn.SGD(net.trainable_params(), 0.1)"), settings=settings)
    for later in (Settings(), LINEAR, WARM):
        again = run(once, settings=later)
        assert not again.changed
        assert statuses(again, "MSD506") == [KEPT]


def test_the_warm_up_asks_the_dataset_that_trains() -> None:
    source = with_optimizer("opt = nn.SGD(net.trainable_params(), 0.1)")
    assert added(source, WARM, "warm_up_learning_rate(") == [
        "opt = nn.SGD(net.trainable_params(), warm_up_learning_rate(0.1, rank_size, train, 2))"
    ]


@pytest.mark.parametrize(
    ("source", "settings", "says"),
    [
        pytest.param(HEAD + CONTEXT + "net = nn.Dense(4, 2)\nopt = nn.SGD(net.trainable_params(), 0.1)\n" + BATCH + RUN,
                     WARM, "has no name here", id="dataset behind the optimizer"),
        pytest.param(with_optimizer("opt = nn.SGD(net.trainable_params(), 0.1)", BATCH.strip() + ".repeat(3)\n"),
                     WARM, "is repeated", id="repeated"),
        pytest.param(with_optimizer("opt = nn.SGD(net.trainable_params(), **options)"),
                     LINEAR, "write it out", id="stars"),
        pytest.param(with_optimizer("opt = nn.SGD(net.trainable_params(), 0.1)\nopt.learning_rate = 0.2"),
                     LINEAR, "sets the learning rate anew", id="set later"),
        pytest.param(with_optimizer("opt = nn.SGD(net.trainable_params(), 0.1)\nms.ops.assign(opt.learning_rate, 0.2)"),
                     LINEAR, "sets the learning rate anew", id="assigned later"),
    ],
)  # fmt: skip
def test_rates_that_cannot_be_scaled_are_refused(source: str, settings: Settings, says: str) -> None:
    assert says in refusal(source, settings, "MSD506")


# -- quiet ranks -----------------------------------------------------------------------------------------------------------


def test_prints_are_left_alone_unless_it_is_asked_for() -> None:
    assert "sys.stdout" not in converted(HEAD + CONTEXT + BATCH + TRAINING)


def test_the_other_ranks_print_nothing() -> None:
    (line,) = added(HEAD + CONTEXT + BATCH + TRAINING, QUIET, "sys.stdout")
    assert line.startswith('sys.stdout = sys.stdout if rank_id == 0 else open(os.devnull, "w", encoding="utf-8")')


@pytest.mark.parametrize(
    ("bar", "want"),
    [
        pytest.param("tqdm(rows)", "tqdm(rows, disable=rank_id not in (None, 0))", id="disabled"),
        pytest.param("tqdm(rows, disable=True)", "tqdm(rows, disable=True)", id="says itself"),
        pytest.param("tqdm(rows, **how)", "tqdm(rows, **how)", id="may say itself"),
    ],
)
def test_progress_bars(bar: str, want: str) -> None:
    source = HEAD + "from tqdm import tqdm\n" + CONTEXT + BATCH + "rows, how = [1], {}\n"
    assert f"for row in {want}:" in converted(source + f"for row in {bar}:\n    pass\n" + TRAINING, settings=QUIET)


# -- steps and workers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("lr = nn.WarmUpLR(0.1, 1875)", "1875 / ranks would mean the same (on 8 ranks 234)", id="number"),
        pytest.param("def f(n):\n    return nn.WarmUpLR(0.1, n)\nlr = f(1875)", "(1875 at train.py:8)", id="handed on"),
        pytest.param("files = [1, 2]\nlr = nn.WarmUpLR(0.1, len(files) // own.size)", "len(files)", id="all rows"),
        pytest.param("model = ms.Model(nn.Dense(4, 2))\nmodel.train(2, train, sink_size=80)", "on 8 ranks 10", id="sink"),
        pytest.param("def table(n):\n    rates = []\n    for i in range(n):\n        rates.append(0.1)\n    return rates\n"
                     "opt = nn.SGD(nn.Dense(4, 2).trainable_params(), table(800))", "on 8 ranks 100", id="own table"),
    ],
)  # fmt: skip
def test_counts_of_steps_are_noted_with_the_number_they_need(text: str, says: str) -> None:
    result = run(HEAD + CONTEXT + BATCH + text + "\n" + TRAINING)
    assert any(f.code == "MSD502" and f.status == NOTED and says in f.message for f in result.findings), result.findings


LOOP = (
    HEAD + CONTEXT + BATCH + "net = nn.Dense(4, 2)\nstep_ = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), "
    "nn.SGD(net.trainable_params(), 0.1))\n"
)


@pytest.mark.parametrize(
    ("loop", "noted"),
    [
        pytest.param("for e in range(10):\n    for x, y in train.create_tuple_iterator():\n        step_(x, y)\n", 0,
                     id="epochs"),
        pytest.param("for i, (x, y) in enumerate(train.create_tuple_iterator()):\n    step_(x, y)\n"
                     "    if i % 100 == 0:\n        print(i)\n", 0, id="shown now and then"),
        pytest.param("it = train.create_tuple_iterator()\nfor i in range(1000):\n    x, y = next(it)\n    step_(x, y)\n", 1,
                     id="range"),
        pytest.param("for i, (x, y) in enumerate(train.create_tuple_iterator()):\n    step_(x, y)\n"
                     "    if i + 1 >= 500:\n        break\n", 1, id="break"),
        pytest.param("it, n = train.create_tuple_iterator(), 0\nwhile n < 500:\n    x, y = next(it)\n    step_(x, y)\n"
                     "    n += 1\n", 1, id="while"),
    ],
)  # fmt: skip
def test_loops_that_end_training_after_some_steps_are_noted(loop: str, noted: int) -> None:
    assert statuses(run(LOOP + loop), "MSD502") == [NOTED] * noted


def test_workers_are_noted_with_their_number_on_all_ranks() -> None:
    data = 'ds.config.set_num_parallel_workers(3)\ntrain = ds.MnistDataset("/d", num_parallel_workers=32)\n'
    messages = [f.message for f in run(HEAD + CONTEXT + data + TRAINING).findings if f.code == "MSD205"]
    assert any("on 8 ranks 256" in message for message in messages)
    assert any("on 8 ranks 24" in message for message in messages)


# -- helpers of ModelArts --------------------------------------------------------------------------------------------------

HELPERS = """\
import os
def get_device_id():
    device_id = os.getenv("DEVICE_ID", "0")
    return int(device_id)
def get_rank_id():
    return int(os.getenv("RANK_ID", "0"))
class Config:
    pass
config = Config()
"""


@pytest.mark.parametrize(
    ("text", "status"),
    [
        pytest.param("ms.set_context(device_id=get_device_id())\n", KEPT, id="function"),
        pytest.param("config.device_id = get_device_id()\nms.set_context(device_id=config.device_id)\n", KEPT, id="set"),
        pytest.param("config.device_id = 3\nif config.cloud:\n    config.device_id = get_device_id()\n"
                     "ms.set_context(device_id=config.device_id)\n", CHANGED, id="set under a condition"),
        pytest.param("config.device_id = 3\nms.set_context(device_id=config.device_id)\n", CHANGED, id="another"),
        pytest.param("device_id = get_device_id()\nms.set_context(device_id=config.device_id)\n", CHANGED,
                     id="a variable of the same name"),
    ],
)  # fmt: skip
def test_device_ids_of_helper_functions_are_understood(text: str, status: str) -> None:
    assert statuses(run(HELPERS + HEAD + text + BATCH + TRAINING), "MSD101") == [status]


ON_ARGUMENTS = """\
import argparse
import os
from mindspore.communication import get_group_size, get_rank, init
parser = argparse.ArgumentParser()
parser.add_argument("--distribute", type=int, default=1)
parser.add_argument("--rank", type=int, default=0)
args = parser.parse_args()
ms.set_context(device_id=int(os.getenv("DEVICE_ID", "0")))
if args.distribute:
    init()
    args.rank, args.group_size = get_rank(), get_group_size()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True,
                                 parameter_broadcast=True, device_num=args.group_size)
else:
    args.group_size = 1
ms.set_seed(1)
train = ds.MnistDataset("/data", num_shards=args.group_size, shard_id=args.rank).batch(32, drop_remainder=True)
lr = 0.1 * args.group_size
opt = nn.SGD(net.trainable_params(), lr)
calls = [ms.ModelCheckpoint("a")] if args.rank == 0 else []
model = ms.Model(net, optimizer=opt)
model.train(1, train, callbacks=calls)
"""


def test_ranks_kept_among_the_arguments_are_understood() -> None:
    result = run(HEAD + ON_ARGUMENTS, settings=LINEAR)
    assert {finding.status for finding in result.findings} <= {KEPT, NOTED}
    for code in ("MSD101", "MSD102", "MSD103", "MSD201", "MSD401", "MSD506"):
        assert statuses(result, code) == [KEPT], code


def test_a_decision_on_a_helper_is_not_doubled() -> None:
    saved = 'config.rank = get_rank_id()\nif config.rank == 0:\n    ms.save_checkpoint(net, "a.ckpt")\n'
    result = run(HELPERS + HEAD + CONTEXT + BATCH + TRAINING + saved)
    assert statuses(result, "MSD402") == [KEPT]
