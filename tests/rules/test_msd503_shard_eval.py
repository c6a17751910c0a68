"""MSD503 with --shard-eval: evaluations are dealt and summed exactly, or refused by name."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest
from support import HEAD, dedent, found, run, show, unchanged

from ms_distify import Conversion, Settings
from ms_distify.plan.helper_texts import KINDS

SHARD = Settings(shard_eval=True)
START = (
    HEAD
    + """\
import numpy as np
from mindspore import ops
from mindspore.communication import get_rank
ms.set_context(mode=1)
train = ds.NumpySlicesDataset(([[1.0]], [[1.0]]), ["x", "y"]).batch(1, True)
test = ds.NumpySlicesDataset(([[1.0]], [[1.0]]), ["x", "y"]).batch(4)
net = nn.Dense(1, 1)
loss_fn = nn.MSELoss()
opt = nn.SGD(net.trainable_params(), 0.1)
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, opt.parameters)
for x, y in train.create_tuple_iterator():
    loss, grads = grad_fn(x, y)
    opt(grads)
"""
)
LINES = START.count("\n")
LOOP = "for x, y in test.create_tuple_iterator():\n"
COUNTS = LOOP + "    hits += int((net(x) == y).sum())\n    total += len(y)\n"


def sharded(source: str) -> Conversion:
    """Convert with --shard-eval; run() also sees that a second run changes nothing."""
    return run(source, settings=SHARD)


def lines(source: str) -> list[str]:
    result = sharded(START + source)
    assert not result.refused, [f for f in result.findings if f.status == "refused"]
    return result.output.decode().splitlines()


def refuses(source: str, line: int, message: str) -> None:
    result = sharded(START + source)
    told = [(f.line - LINES, f.message) for f in result.findings if f.code == "MSD503" and f.status == "refused"]
    assert any(at == line and message in text for at, text in told), result.findings
    assert not run(START + source).refused, "without the option it is converted"


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param(LOOP + "    print(net(x))\n", id="only-shown"),
        pytest.param(LOOP + "    print(x.shape)\n    break\n", id="one-batch-looked-at"),
        pytest.param("for x, y in train.create_tuple_iterator():\n    print(net(x))\n", id="rows-that-train"),
        pytest.param("n = test.get_dataset_size()\n", id="the-size"),
        pytest.param("", id="no-evaluation"),
        pytest.param("for x, y in zip([1], [2]):\n    print(x + y)\n", id="no-dataset"),
    ],
)
def test_what_is_no_evaluation_is_left(loop: str) -> None:
    after = sharded(START + loop)
    assert after.output == run(START + loop).output, "as without the option"
    assert b"rank_batches" not in after.output
    assert b"sum_over_ranks" not in after.output


def test_without_the_option_evaluations_stay_whole() -> None:
    plain = run(START + "hits, total = 0, 0\n" + COUNTS + "print(hits / total)\n").output.decode()
    assert "rank_batches" not in plain
    assert "sum_over_ranks" not in plain


def test_a_program_that_does_not_train_is_left() -> None:
    unchanged(HEAD + "test = ds.MnistDataset('/d').batch(4)\nms.Model(nn.Dense(1, 1), metrics={'acc'}).eval(test)\n")


@pytest.mark.parametrize(
    ("before", "loop", "behind", "summed"),
    [
        pytest.param("hits, total = 0, 0\n", COUNTS, "print(hits / total)\n", "hits, total", id="accuracy"),
        pytest.param(
            "hits = total = 0\n", COUNTS, "print(hits / test.get_dataset_size())\n", "hits", id="whole-size-as-divisor"
        ),
        pytest.param(
            "loss, n = ms.Tensor(0.0), 0\n",
            LOOP + "    one = loss_fn(net(x), y)\n    loss = loss + one\n    n += 1\n    print(n, loss)\n",
            "loss /= n\nprint(loss)\n",
            "loss, n",
            id="mean-of-batches-and-shown-on-the-way",
        ),
        pytest.param(
            "hits = 0\n",
            LOOP + "    for a, b in zip(net(x), y):\n        same = a == b\n        if same:\n            hits += 1\n",
            "print(hits)\n",
            "hits",
            id="row-by-row",
        ),
    ],
)
def test_loops_that_count(before: str, loop: str, behind: str, summed: str) -> None:
    after = lines(before + loop + behind)
    assert "for x, y in rank_batches(test.create_tuple_iterator()):" in after
    first = behind.splitlines()[0]
    assert after[after.index(first) - 1] == f"{summed} = sum_over_ranks({summed})"
    assert [line for line in after if " = sum_over_ranks(" in line] == [f"{summed} = sum_over_ranks({summed})"]


def test_a_loop_in_a_function_and_under_a_condition_of_all_ranks() -> None:
    function = dedent("""
        def evaluate(data):
            hits = total = 0
            for i, (x, y) in enumerate(data.create_tuple_iterator()):
                hits += (net(x) == y).asnumpy().sum()
                total += y.shape[0]
            return hits / total
        for epoch in range(4):
            if (epoch + 1) % 2 == 0:
                print(evaluate(test))
    """)
    after = lines(function)
    assert "    for i, (x, y) in rank_batches(enumerate(data.create_tuple_iterator())):" in after
    assert after[after.index("    return hits / total") - 1] == "    hits, total = sum_over_ranks(hits, total)"


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        pytest.param(
            "seen = []\n" + LOOP + "    seen.append(net(x))\nprint(np.concatenate(seen))\n",
            3,
            "seen.append()",
            id="a-list",
        ),
        pytest.param(
            "most = 0\n" + LOOP + "    most = max(most, float(net(x)))\nprint(most)\n", 3, "most is", id="a-maximum"
        ),
        pytest.param(LOOP + "    last = net(x)\nprint(last)\n", 2, "read behind", id="the-last-batch"),
        pytest.param(
            "hits = 0\n" + LOOP + "    hits += int(net(x))\n    rate = hits / 4\n    print(rate)\nprint(hits)\n",
            4,
            "before it is complete",
            id="a-rate-on-the-way",
        ),
        pytest.param(
            "hits = 0\n" + LOOP + "    hits += 1\n    if hits > 5:\n        break\nprint(hits)\n",
            5,
            "middle",
            id="a-break",
        ),
        pytest.param("hits = 7\n" + LOOP + "    hits += 1\nprint(hits)\n", 3, "start at 0", id="not-from-zero"),
        pytest.param(
            "hits = 0\nfor _ in range(2):\n    for x, y in test.create_tuple_iterator():\n        hits += 1\nprint(hits)\n",
            4,
            "start at 0",
            id="summed-over-two-rounds",
        ),
        pytest.param(
            "found = {}\n" + LOOP + "    found['a'] = net(x)\nprint(found)\n", 3, "found['a'] is set", id="a-dictionary"
        ),
        pytest.param(
            "f1 = nn.F1()\n" + LOOP + "    f1.update(net(x), y)\nprint(f1.eval())\n", 3, "f1.update()", id="a-metric"
        ),
        pytest.param(
            "seen = []\ndef keep(x):\n    seen.append(x)\n    return 1\nn = 0\n"
            + LOOP
            + "    n += keep(x)\nprint(n)\n",
            7,
            "sets seen",
            id="a-function-that-keeps",
        ),
        pytest.param(
            "h = 0.5\nhits = 0\n" + LOOP + "    h = net(x) * h\n    hits += int((h == y).sum())\nprint(hits)\n",
            4,
            "h is carried",
            id="a-state-from-batch-to-batch",
        ),
        pytest.param(
            "hits = 0\nfor i, (x, y) in enumerate(test.create_tuple_iterator()):\n    if i == 0:\n        first = net(x)\n"
            "    hits += int((net(x) == first).sum())\nprint(hits)\n",
            4,
            "first is carried",
            id="what-the-first-batch-set",
        ),
        pytest.param(
            "def evaluate():\n    global hits\n    hits = n = 0\n    for x, y in test.create_tuple_iterator():\n"
            "        hits += int((net(x) == y).sum())\n        n += len(y)\n    return n\nprint(evaluate(), hits)\n",
            5,
            "other functions",
            id="a-global",
        ),
        pytest.param(
            "def evaluate():\n    hits = 0\n    def one():\n        nonlocal hits\n        n = 0\n"
            "        for x, y in test.create_tuple_iterator():\n            hits += 1\n            n += len(y)\n"
            "        return n\n    return one() / hits\nprint(evaluate())\n",
            7,
            "other functions",
            id="a-nonlocal",
        ),
        pytest.param(
            "told = [nn.Accuracy(), nn.F1()]\nn = 0\n"
            + LOOP
            + "    for m in told:\n        m.update(net(x), y)\n    n += 1\nprint(n, told[0].eval())\n",
            5,
            "m.update()",
            id="metrics-in-a-list",
        ),
        pytest.param(
            "told = {'a': nn.Accuracy()}\nn = 0\n"
            + LOOP
            + "    m = told.get('a')\n    m.update(net(x), y)\n    n += 1\nprint(n, told['a'].eval())\n",
            5,
            "m.update()",
            id="a-metric-by-another-name",
        ),
        pytest.param(
            "seen = []\nn = 0\n" + LOOP + "    _ = seen.append(net(x))\n    n += 1\nprint(n, seen)\n",
            4,
            "seen.append()",
            id="a-list-in-an-expression",
        ),
        pytest.param(
            "other = iter([1, 2])\nn = 0\n" + LOOP + "    n += next(other)\nprint(n)\n",
            4,
            "takes from other",
            id="in-step-with-an-iterator",
        ),
        pytest.param(
            "n = 0\n" + LOOP + "    z = np.random.rand()\n    n += int((net(x) * z == y).sum())\nprint(n)\n",
            3,
            "it draws",
            id="random-numbers",
        ),
        pytest.param(
            "class Count(nn.Cell):\n    def __init__(self):\n        super().__init__()\n        self.n = 0\n"
            "    def construct(self, x):\n        self.n += 1\n        return x\ncount = Count()\nhits = 0\n"
            + LOOP
            + "    hits += int(count(x).sum())\nprint(hits, count.n)\n",
            11,
            "sets self.n",
            id="a-cell-that-counts",
        ),
        pytest.param(
            "def near(x):\n    n = 0\n    for u, v in test.create_tuple_iterator():\n        n += int((net(x) == net(u)).sum())\n"
            "    return n\nn = 0\n" + LOOP + "    n += near(x)\nprint(n)\n",
            3,
            "runs for each batch",
            id="an-evaluation-for-each-batch-of-another",
        ),
        pytest.param(
            "print([float(net(x)) for x, y in test.create_tuple_iterator()])\n", 1, "comprehension", id="a-list-at-once"
        ),
        pytest.param(
            "hits = 0\nif get_rank() == 0:\n    for x, y in test.create_tuple_iterator():\n        hits += 1\nprint(hits)\n",
            3,
            "the rank decides",
            id="on-rank-0-alone",
        ),
        pytest.param(
            "def count(data):\n    n = 0\n    for x, y in data.create_tuple_iterator():\n        n += len(y)\n    return n\n"
            "print(count(train), count(test))\n",
            3,
            "training data as well",
            id="one-loop-for-both",
        ),
    ],
)
def test_what_is_no_sum_is_refused(source: str, line: int, message: str) -> None:
    refuses(source, line, message)


def test_the_rows_of_a_batch_are_no_batches() -> None:
    """What is called for each batch, or stands in its round, is not dealt again: other ranks would wait for ever."""
    after = lines(
        "def count(p, y):\n    n = 0\n    for a, b in zip(p, y):\n        n += a == b\n    return n\nn = 0\n"
        + LOOP
        + "    n += count(net(x), y)\n    n += len([a for a in x])\nprint(n)\n"
    )
    assert [line for line in after if " = sum_over_ranks(" in line] == ["n = sum_over_ranks(n)"]
    assert "    for a, b in zip(p, y):" in after


def test_a_loop_over_datasets_is_none_over_batches() -> None:
    after = lines(
        "other = ds.MnistDataset('/t').batch(4)\nfor data in [test, other]:\n    hits = 0\n"
        "    for x, y in data.create_tuple_iterator():\n        hits += int((net(x) == y).sum())\n    print(hits)\n"
    )
    assert "for data in [test, other]:" in after
    assert "    for x, y in rank_batches(data.create_tuple_iterator()):" in after
    assert [line for line in after if " = sum_over_ranks(" in line] == ["    hits = sum_over_ranks(hits)"]


def test_pairs_of_batches() -> None:
    after = lines(
        "n = 0\n"
        + LOOP
        + "    for u, v in test.create_tuple_iterator():\n        n += int((net(x) == net(u)).sum())\nprint(n)\n"
    )
    assert "for x, y in rank_batches(test.create_tuple_iterator()):" in after
    assert "    for u, v in test.create_tuple_iterator():" in after
    assert [line for line in after if " = sum_over_ranks(" in line] == ["n = sum_over_ranks(n)"]


def test_without_the_option_what_is_dealt_stays_dealt() -> None:
    dealt = "\n".join(lines("model = ms.Model(net, loss_fn, opt, metrics={'acc'})\nprint(model.eval(test))\n")) + "\n"
    again = run(dealt)
    assert not again.changed
    (told,) = [f.message for f in again.findings if f.code == "MSD503"]
    assert "its share of the batches" in told


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("batches", [1, 2, 3, 4, 5, 25])
def test_the_shares_of_a_dataset_are_the_whole_or_each_all_of_it(
    batches: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every batch is evaluated equally often, so that quotients of sums are those of one card; no share is empty."""

    class Batches(list):  # type: ignore[type-arg]
        def get_dataset_size(self) -> int:
            return len(self)

        def skip(self, number: int) -> Batches:
            return Batches(self[number:])

        def take(self, number: int) -> Batches:
            assert number > 0
            return Batches(self[:number])

    kind = KINDS["part"]
    scope: dict[str, Any] = {"os": os, "deepcopy": copy.deepcopy}
    exec(kind[1].format(name="rank_part", os="os", deepcopy="deepcopy"), scope)
    monkeypatch.setenv("RANK_SIZE", str(size))
    seen: list[int] = []
    for rank in range(size):
        monkeypatch.setenv("RANK_ID", str(rank))
        share = scope["rank_part"](Batches(range(batches)))
        assert share
        seen += share
    assert sorted(seen) == sorted(list(range(batches)) * (1 if batches >= size else size))


MODEL = "model = ms.Model(net, loss_fn, opt, metrics=METRICS)\nprint(model.eval(test))\n"


@pytest.mark.parametrize(
    "metrics",
    [
        pytest.param("{'acc'}", id="name"),
        pytest.param("{'top_1_accuracy', 'loss', 'mae'}", id="names"),
        pytest.param("{'a': nn.Accuracy(), 'b': nn.Top1CategoricalAccuracy()}", id="objects"),
        pytest.param("{'a': ms.train.Accuracy('multilabel'), 'l': nn.Loss()}", id="of-train"),
    ],
)
def test_models_whose_metrics_are_sums(metrics: str) -> None:
    after = lines(MODEL.replace("METRICS", metrics))
    assert f"model = ms.Model(net, loss_fn, opt, metrics=metrics_over_ranks({metrics}))" in after
    assert "print(model.eval(rank_part(test)))" in after


def test_metrics_in_a_variable_and_fit() -> None:
    after = lines(
        "told = {'acc': nn.Accuracy()}\nmodel = ms.Model(net, loss_fn, opt, metrics=told)\nmodel.fit(2, train, test)\n"
        "model.eval(valid_dataset=test)\n"
    )
    assert "model = ms.Model(net, loss_fn, opt, metrics=metrics_over_ranks(told))" in after
    assert "model.fit(2, train, rank_part(test))" in after
    assert "model.eval(valid_dataset=rank_part(test))" in after


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        pytest.param("{'acc', 'F1'}", "F1 is not known", id="F1"),
        pytest.param("{'auc': nn.auc}", "nn.auc is not known", id="another-function"),
        pytest.param("{'p': nn.Precision()}", "nn.Precision() is not known", id="precision"),
        pytest.param("None", "cannot be told", id="none"),
        pytest.param("open('x').read()", "cannot be told", id="from-elsewhere"),
    ],
)
def test_models_with_other_metrics_are_refused(metrics: str, message: str) -> None:
    refuses(MODEL.replace("METRICS", metrics), 2, message)


def test_a_metric_put_in_later_counts() -> None:
    source = "told = {'acc': nn.Accuracy()}\ntold['f'] = nn.F1()\n" + MODEL.replace("METRICS", "told")
    refuses(source, 4, "nn.F1()")


CALLBACK = """\
class Show(ms.Callback):
    def __init__(self, model):
        self.model = model
    def on_train_epoch_end(self, run_context):
        print(self.model.eval(test))
model = ms.Model(net, loss_fn, opt, metrics={"acc"})
shows = []
"""


def test_an_evaluation_in_a_callback() -> None:
    after = lines(CALLBACK + "shows.append(Show(model))\nmodel.train(1, train, callbacks=shows)\n")
    assert "        print(self.model.eval(rank_part(test)))" in after


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        pytest.param(
            CALLBACK + "if get_rank() == 0:\n    shows.append(Show(model))\nmodel.train(1, train, callbacks=shows)\n",
            5,
            "the rank decides",
            id="a-callback-of-rank-0",
        ),
        pytest.param(
            MODEL.replace("METRICS", "{'acc'}").replace("print(", "good = get_rank() == 0 and bool("),
            2,
            "the rank decides",
            id="behind-and",
        ),
        pytest.param(
            "acc = nn.Accuracy()\n"
            + MODEL.replace("METRICS", "{'acc': acc}")
            + "if get_rank() == 0:\n    acc.eval()\n",
            3,
            "used by hand",
            id="a-metric-that-is-asked-by-hand",
        ),
        pytest.param(
            "class Rows:\n    def __len__(self):\n        return 8\n    def __getitem__(self, i):\n"
            "        return np.random.rand(), i\nrows = ds.GeneratorDataset(Rows(), ['x', 'y']).batch(4)\n"
            + MODEL.replace("METRICS", "{'acc'}").replace("test", "rows"),
            8,
            "rows are drawn (numpy.random.rand",
            id="drawn-rows",
        ),
        pytest.param(
            "def moved(x):\n    return x + np.random.rand()\nrows = test.map(moved, ['x'])\n"
            + MODEL.replace("METRICS", "{'acc'}").replace("test", "rows"),
            5,
            "rows are drawn (numpy.random.rand",
            id="rows-moved-at-random",
        ),
    ],
)
def test_evaluations_that_not_all_ranks_come_to_alike_are_refused(source: str, line: int, message: str) -> None:
    refuses(source, line, message)


def test_an_evaluation_behind_a_stop_on_the_training_loss() -> None:
    """All ranks stop alike, so all of them evaluate."""
    head, loop = START.split("for x, y in train")
    source = f"{head}for epoch in range(3):\n    for x, y in train" + loop.replace("\n    ", "\n        ")
    source += "    last = float(loss)\n    if last < 0.1:\n        break\n    hits = 0\n"
    source += (LOOP + "    hits += int((net(x) == y).sum())\nprint(hits)\n").replace("for ", "    for ", 1)
    after = sharded(source.replace("\n    hits +=", "\n        hits +=").replace("\nprint", "\n    print"))
    assert not after.refused, show(after)
    text = after.output.decode()
    assert text.count("    last = sum_over_ranks(last, mean=True)\n") == 1
    assert "    for x, y in rank_batches(test.create_tuple_iterator()):\n" in text


def test_a_batch_that_is_looked_at_is_a_decision_of_one_rank_where_it_keeps_statistics() -> None:
    """One batch is not dealt, so ranks would stop on what their own BatchNorm makes of it."""
    source = START.replace("net = nn.Dense(1, 1)", "net = nn.SequentialCell(nn.Dense(1, 1), nn.BatchNorm1d(1))")
    head, loop = source.split("for x, y in train")
    source = f"{head}for epoch in range(3):\n    for x, y in train" + loop.replace("\n    ", "\n        ")
    source += (
        "    for x, y in test.create_tuple_iterator():\n        right = (net(x) == y).mean()\n        break\n"
        "    if right > 0.9:\n        break\n"
    )
    after = sharded(source).output.decode().splitlines()
    assert after[after.index("        right = (net(x) == y).mean()") + 1] == (
        "        right = sum_over_ranks(right, mean=True)"
    )


def test_evaluating_training_data_is_refused() -> None:
    refuses(MODEL.replace("METRICS", "{'acc'}").replace("eval(test)", "eval(train)"), 2, "padded")


def test_a_file_that_an_evaluation_goes_into_is_not_written_by_rank_0_alone() -> None:
    source = (
        "def rate():\n    hits = 0\n"
        + LOOP.replace("for", "    for", 1)
        + ("        hits += int(net(x))\n    return hits\nnp.save('rate.npy', rate())\n")
    )
    result = sharded(START + source)
    assert found(result, "MSD405", "changed") == [], show(result)
    assert any("takes all ranks" in f.message for f in result.findings), result.findings


def test_the_setting_in_a_second_run_without_it() -> None:
    """Once it is dealt it stays dealt, with or without the option."""
    first = sharded(
        START + "hits, total = 0, 0\n" + COUNTS + "print(hits / total)\n" + MODEL.replace("METRICS", "{'acc'}")
    )
    assert not run(first.output).changed
