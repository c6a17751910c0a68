"""MindSpore reads what is made up, in one process for all formats."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from harness import environment

from ms_distify.verify.watch.fake_data_files import fake_for

pytestmark = pytest.mark.e2e

SCRIPT = """\
import importlib.util, json, sys
import numpy as np
import mindspore.dataset as ds
from mindspore import dtype

# as the recorder loads it: by its path, without ms_distify
spec = importlib.util.spec_from_file_location("fake_data_files", sys.argv[1])
fake = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fake)

schema = ds.Schema()
schema.add_column("picture", dtype.uint8)
schema.add_column("label", dtype.int64, [1])
schema.add_column("points", dtype.float32, [2, 3])
small = ds.Schema()
small.add_column("a", dtype.int32, [2])
small.add_column("b", dtype.uint8, [1])
names = ["x", "label"]
fake.fake_for("TFRecordDataset", "tf/a.tfrecord", {"schema": schema}, rows=20)
fake.fake_for("TFRecordDataset", "small/a.tfrecord", {"schema": small}, rows=20)
columns = ["picture:bytes", "label:int32", "v:float32:-1", "name:string", "m:int64:2x2"]
fake.fake_for("MindDataset", "record/a.mindrecord", {"columns": columns}, rows=20)
for part in ("csv/a.csv", "csv/b.csv"):
    given = {"column_names": names, "column_defaults": [0.0, 0], "dataset_files": ["csv/a.csv", "csv/b.csv"]}
    fake.fake_for("CSVDataset", part, given, rows=20)
fake.fake_for("CSVDataset", "text_csv/a.csv", {"column_names": names, "field_delim": ";"}, rows=20)
fake.fake_for("ImageFolderDataset", "jpeg", {"extensions": [".jpg"]}, rows=20)
sets = {
    "MnistDataset": ds.MnistDataset("mnist", "train", shuffle=False),
    "MnistDataset test": ds.MnistDataset("mnist", "test", shuffle=False),
    "FashionMnistDataset": ds.FashionMnistDataset("fashion", "train", shuffle=False),
    "KMnistDataset": ds.KMnistDataset("kmnist", "train", shuffle=False),
    "Cifar10Dataset": ds.Cifar10Dataset("cifar10", "train", shuffle=False),
    "Cifar10Dataset test": ds.Cifar10Dataset("cifar10", "test", shuffle=False),
    "Cifar100Dataset test": ds.Cifar100Dataset("cifar100", "test", shuffle=False),
    "ImageFolderDataset": ds.ImageFolderDataset("pictures", shuffle=False, decode=True),
    "ImageFolderDataset jpeg": ds.ImageFolderDataset("jpeg", shuffle=False, decode=True, extensions=[".jpg"]),
    "TextFileDataset": ds.TextFileDataset("text/*.txt", shuffle=False),
    "CSVDataset": ds.CSVDataset(["csv/a.csv", "csv/b.csv"], column_defaults=[0.0, 0], column_names=names, shuffle=False),
    "CSVDataset text": ds.CSVDataset("text_csv/a.csv", ";", column_names=names, shuffle=False),
    "TFRecordDataset": ds.TFRecordDataset("tf/a.tfrecord", schema, shuffle=False),
    "TFRecordDataset no schema": ds.TFRecordDataset("tf/a.tfrecord", shuffle=False),
    "TFRecordDataset small": ds.TFRecordDataset("small/a.tfrecord", small, shuffle=False),
    "MindDataset": ds.MindDataset("record/a.mindrecord", shuffle=False),
}
found = {"Cifar100Dataset": {"size": ds.Cifar100Dataset("cifar100", "train").get_dataset_size()}}
for name, data in sets.items():
    rows, kinds = set(), None
    for row in data.create_dict_iterator(num_epochs=1, output_numpy=True):
        kinds = {key: [str(value.dtype.kind), list(value.shape)] for key, value in row.items()}
        rows.add(b"|".join(value.tobytes() for key, value in sorted(row.items())))
    found[name] = {"size": data.get_dataset_size(), "distinct": len(rows), "columns": kinds}
decoded = [ds.vision.Decode()(row[0]).shape for row in
           ds.MindDataset("record/a.mindrecord", ["picture"], shuffle=False).create_tuple_iterator(output_numpy=True)]
found["decoded"] = [list(shape) for shape in decoded[:1]]
json.dump(found, open("found.json", "w"))
"""

CASES = [
    pytest.param("MnistDataset", 20, {"image": ["u", [28, 28, 1]], "label": ["u", []]}, id="MNIST"),
    pytest.param("MnistDataset test", 20, {"image": ["u", [28, 28, 1]], "label": ["u", []]}, id="MNIST test"),
    pytest.param("FashionMnistDataset", 20, {"image": ["u", [28, 28, 1]], "label": ["u", []]}, id="Fashion-MNIST"),
    pytest.param("KMnistDataset", 20, {"image": ["u", [28, 28, 1]], "label": ["u", []]}, id="KMNIST"),
    pytest.param("Cifar10Dataset", 10_000, {"image": ["u", [32, 32, 3]], "label": ["u", []]}, id="CIFAR-10"),
    pytest.param("Cifar10Dataset test", 10_000, {"image": ["u", [32, 32, 3]], "label": ["u", []]}, id="CIFAR-10 test"),
    pytest.param(
        "Cifar100Dataset test",
        10_000,
        {"image": ["u", [32, 32, 3]], "coarse_label": ["u", []], "fine_label": ["u", []]},
        id="CIFAR-100 test",
    ),
    pytest.param("ImageFolderDataset", 20, {"image": ["u", [224, 224, 3]], "label": ["i", []]}, id="PNG"),
    pytest.param("ImageFolderDataset jpeg", 20, {"image": ["u", [224, 224, 3]], "label": ["i", []]}, id="JPEG"),
    pytest.param("TextFileDataset", 20, {"text": ["U", []]}, id="text"),
    pytest.param("CSVDataset", 40, {"x": ["f", []], "label": ["i", []]}, id="CSV in two files"),
    pytest.param("CSVDataset text", 20, {"x": ["U", []], "label": ["U", []]}, id="CSV as text"),
    pytest.param("TFRecordDataset small", 20, {"a": ["i", [2]], "b": ["u", [1]]}, id="TFRecord of integers"),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    pytest.importorskip("mindspore", reason="MindSpore is not installed: pip install 'ms-distify[cpu]'")
    folder = tmp_path_factory.mktemp("made up")
    kinds = {
        "MnistDataset": "mnist",
        "FashionMnistDataset": "fashion",
        "KMnistDataset": "kmnist",
        "Cifar10Dataset": "cifar10",
        "Cifar100Dataset": "cifar100",
        "ImageFolderDataset": "pictures",
        "TextFileDataset": "text/*.txt",
    }
    for kind, name in kinds.items():
        fake_for(kind, str(folder / name), {}, rows=20)
    import ms_distify.verify.watch.fake_data_files as files

    (folder / "read.py").write_text(SCRIPT)
    env = environment(None)
    env.pop("PYTHONPATH", None)
    command = [sys.executable, "read.py", str(Path(files.__file__))]
    subprocess.run(command, cwd=folder, env=env, check=True, timeout=200)
    result: dict[str, dict[str, object]] = json.loads((folder / "found.json").read_text())
    return result


@pytest.mark.parametrize(("name", "rows", "columns"), CASES)
def test_is_read(found: dict[str, dict[str, object]], name: str, rows: int, columns: object) -> None:
    assert found[name] == {"size": rows, "distinct": rows, "columns": columns}


def test_cifar100_trains_on_fifty_thousand(found: dict[str, dict[str, object]]) -> None:
    assert found["Cifar100Dataset"] == {"size": 50_000}


@pytest.mark.parametrize("name", ["TFRecordDataset", "TFRecordDataset no schema", "MindDataset"])
def test_tables(found: dict[str, dict[str, object]], name: str) -> None:
    assert (found[name]["size"], found[name]["distinct"]) == (20, 20)
    columns = found[name]["columns"]
    assert isinstance(columns, dict)
    if name == "MindDataset":
        assert {key: columns[key] for key in ("label", "v", "m")} == {
            "label": ["i", []],
            "v": ["f", [8]],
            "m": ["i", [2, 2]],
        }
        assert found["decoded"] == [[64, 64, 3]]
    else:
        assert columns["label"] == ["i", [1]]
        assert columns["points"][0] == "f"
    if name == "TFRecordDataset":
        assert columns["points"] == ["f", [2, 3]]
