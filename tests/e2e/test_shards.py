"""Which rows each rank reads: converted programs on two real ranks."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from harness import environment

from ms_distify import convert

pytestmark = pytest.mark.e2e
ROWS, TEST_ROWS = 22, 9

# Prints, for each process, the rows it trained on in each epoch and the rows it evaluated on.
PROGRAM = '''\
import json
import os
import numpy as np
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn

ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")


class Rows:
    """Row i is (i, i)."""

    def __init__(self, first, count):
        self.first, self.count = first, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        value = np.array([self.first + index], np.float32)
        return value, value


def slices(first, count, batch):
    values = np.arange(first, first + count, dtype=np.float32).reshape(-1, 1)
    return ds.NumpySlicesDataset((values, values), ["x", "y"], shuffle=True).batch(batch)


def objects(first, count, batch):
    return ds.GeneratorDataset(Rows(first, count), ["x", "y"], shuffle=True).batch(batch)


def create(kind, first, count, batch=2):
    if kind == "slices":
        return slices(first, count, batch)
    return objects(first, count, batch)


def main():
    seen = {}
    net = nn.Dense(1, 1)
    cell = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 1e-5))
    cell.set_train()
    for kind in ("slices", "objects"):
        train = create(kind, 0, %(rows)d)
        test = create(kind, 1000, %(test)d)
        seen[kind] = []
        for epoch in range(2):
            rows = []
            for x, y in train.create_tuple_iterator():
                cell(x, y)
                rows.append(x.asnumpy().ravel().tolist())
            seen[kind].append(rows)
        seen[kind].append([x.asnumpy().ravel().tolist() for x, y in test.create_tuple_iterator()])
    with open("rows%s.json" % os.getenv("RANK_ID", ""), "w") as out:
        json.dump(seen, out)


main()
'''.replace("%(rows)d", str(ROWS)).replace("%(test)d", str(TEST_ROWS))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def run_ranks(script: Path, number: int) -> None:
    command = [
        str(Path(sys.executable).parent / "msrun"), f"--worker_num={number}", f"--local_worker_num={number}",
        f"--master_port={free_port()}", "--log_dir=logs", "--join=True", script.name,
    ]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=script.parent, env=environment(None), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=240)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    logs = "".join(log.read_text(errors="replace")[-2000:] for log in script.parent.glob("logs/worker*.log"))
    assert process.returncode == 0, output[-2000:] + logs


@pytest.mark.parametrize("number", [pytest.param(2, id="2 ranks"), pytest.param(3, id="3 ranks")])
def test_rows_of_a_function_for_both_roles(tmp_path: Path, number: int) -> None:
    pytest.importorskip("mindspore")
    script = tmp_path / "train_dist.py"
    result = convert(PROGRAM.encode(), "train.py")
    assert not result.refused, result.findings
    assert result.changed
    script.write_bytes(result.output)
    run_ranks(script, number)
    ranks = [json.loads((tmp_path / f"rows{rank}.json").read_text()) for rank in range(number)]
    padded = -(-ROWS // number)  # shards are padded to equal length by wrap-around (FACTS 5)
    for kind in ("slices", "objects"):
        for epoch in range(2):
            shards = [[row for batch in rank[kind][epoch] for row in batch] for rank in ranks]
            assert [len(shard) for shard in shards] == [padded] * number, "equal counts"
            assert len({len(rank[kind][epoch]) for rank in ranks}) == 1, "equal steps"
            every = sorted(row for shard in shards for row in shard)
            assert set(every) == set(range(ROWS)), "every row is read"
            assert len(every) - len(set(every)) == padded * number - ROWS, "disjoint up to padding"
        for rank in ranks:
            evaluated = sorted(row for batch in rank[kind][2] for row in batch)
            assert evaluated == [1000 + row for row in range(TEST_ROWS)], "evaluation is whole on every rank"


def test_one_card_reads_what_it_read_before(tmp_path: Path) -> None:
    pytest.importorskip("mindspore")
    result = convert(PROGRAM.encode(), "train.py")
    rows = []
    for name, content in (("before", PROGRAM.encode()), ("after", result.output)):
        folder = tmp_path / name
        folder.mkdir()
        # The seed of the shuffle is the only thing that may differ between two runs of one program.
        (folder / "train.py").write_bytes(content.replace(b"shuffle=True", b"shuffle=False"))
        subprocess.run([sys.executable, "train.py"], cwd=folder, env=environment(None), check=True, timeout=240)
        rows.append(json.loads((folder / "rows.json").read_text()))
    assert rows[0] == rows[1]
