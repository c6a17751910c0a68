"""The options that change numbers, on two real ranks: the global batch kept, the learning rate scaled, quiet ranks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e
pytest.importorskip("numpy", reason="NumPy comes with MindSpore, which is not installed")

from harness import convert, environment, largest_difference, one_card, ranks, recorded  # noqa: E402

from ms_distify.plan.number_helpers import WARMUP  # noqa: E402

PROGRAMS = Path(__file__).parent / "programs"


def test_the_kept_batch_equals_one_card_at_the_same_batch(tmp_path: Path, device: str) -> None:
    source = Path(shutil.copy(PROGRAMS / "model_train.py", tmp_path / "train.py"))
    said = convert(source, tmp_path / "train_dist.py", "--global-batch", "keep", "--quiet-ranks")
    assert "MSD501" in said
    same = ("--device", device, "--batch", "16")
    one_card(source, *same, record=tmp_path / "one")
    ranks(tmp_path / "run_distribute.sh", 2, *same, record=tmp_path / "ranks")
    one, first, second = recorded(tmp_path / "one", "one"), *(recorded(tmp_path / "ranks", r) for r in ("0", "1"))
    assert largest_difference(first.initial, first.final) > 1e-3, "it did train"
    assert largest_difference(first.final, second.final) == 0
    assert largest_difference(first.final, one.final) < 1e-5
    training, evaluation = first.reads
    assert {len(batch) for batch in training} == {8}
    assert len(training) == len(one.reads[0]), "as many steps as one card"
    assert [len(batch) for batch in evaluation] == [5] * 5, (
        "evaluation keeps its batch, which two ranks could not share"
    )
    logs = [(tmp_path / f"device{rank}" / "train.log").read_text() for rank in (0, 1)]
    assert ["evaluated" in log for log in logs] == [True, False], "--quiet-ranks"


def test_the_scaled_rate_equals_one_card_at_twice_the_rate_and_batch(tmp_path: Path, device: str) -> None:
    source = Path(shutil.copy(PROGRAMS / "rates.py", tmp_path / "train.py"))
    convert(source, tmp_path / "train_dist.py", "--scale-lr", "linear")
    said = one_card(source, "--device", device, "--batch", "16", "--lr", "0.1", record=tmp_path / "one")
    ranks(tmp_path / "run_distribute.sh", 2, "--device", device, record=tmp_path / "ranks")
    one, first, second = recorded(tmp_path / "one", "one"), *(recorded(tmp_path / "ranks", r) for r in ("0", "1"))
    assert largest_difference(first.final, second.final) == 0
    assert largest_difference(first.final, one.final) < 1e-5
    rates = _rates(said)
    assert len(rates) == 3 * 6, "three forms, six steps each"
    assert _rates((tmp_path / "device0" / "train.log").read_text()) == rates

    convert(source, tmp_path / "train_dist.py", "--scale-lr", "linear", "--warmup-epochs", "1", "--force")
    ranks(tmp_path / "run_distribute.sh", 2, "--device", device, record=tmp_path / "warm")
    # The first epoch of a rank is two steps. At full height the rates are those above, of one card at twice the rate.
    part = [0.5, 0.75, 1, 1, 1, 1]
    risen = [[form, *(rate * part[k % 6] for rate in own)] for k, (form, *own) in enumerate(rates)]
    warm = _rates((tmp_path / "device0" / "train.log").read_text())
    assert [form for form, *_ in warm] == [form for form, *_ in rates]
    for (_, *now), (_, *expected) in zip(warm, risen):
        assert now == pytest.approx(expected, abs=2e-6)


def _rates(output: str) -> list[list[object]]:
    return [json.loads(line.partition(" ")[2]) for line in output.splitlines() if line.startswith("rate ")]


WARM_UP = """
import json
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from mindspore.nn.learning_rate_schedule import LearningRateSchedule
from mindspore.ops import Minimum

{helper}
class Data:
    def get_dataset_size(self):
        return 2


ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
x, y = Tensor(np.ones((2, 2), np.float32)), Tensor(np.ones((2, 1), np.float32))
forms = {{"number": 0.1, "scalar": Tensor(0.1), "list": [0.1] * 7, "array": np.full(7, 0.1), "table": Tensor([0.1] * 7),
         "schedule": nn.ExponentialDecayLR(0.1, 1.0, 1)}}
for form, rate in forms.items():
    net = nn.Dense(2, 1)
    optimizer = nn.SGD(net.trainable_params(), warm_up_learning_rate(rate, 3, Data(), 2))
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    used = []
    for _ in range(6):
        used.append(round(float(optimizer.get_lr().asnumpy().reshape(-1)[0]), 6))
        step(x, y)
    print("rate", json.dumps([form, used]))
assert warm_up_learning_rate(0.1, None, None, 2) == warm_up_learning_rate(0.1, 1, None, 2) == 0.1
"""


def test_a_rate_rises_over_the_epochs_of_a_rank(tmp_path: Path) -> None:
    """Two epochs of two steps, three ranks: five steps from the rate to three times the rate, and there it stays."""
    spelled = {"schedule": "LearningRateSchedule", "tensor": "Tensor", "minimum": "Minimum"}
    script = tmp_path / "warm_up.py"
    script.write_text(WARM_UP.format(helper=WARMUP.format(name="warm_up_learning_rate", **spelled)))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment(None), timeout=240)
    assert done.returncode == 0, done.stderr
    rates = _rates(done.stdout)
    assert [form for form, _ in rates] == ["number", "scalar", "list", "array", "table", "schedule"]
    for _, used in rates:
        assert used == pytest.approx([0.1, 0.15, 0.2, 0.25, 0.3, 0.3])
