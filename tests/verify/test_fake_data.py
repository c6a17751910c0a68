"""Made-up data as bytes (tests/e2e reads it with MindSpore), and what is never touched."""

from __future__ import annotations

import importlib.util
import io
import os
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from ms_distify.verify.watch import fake_data_files
from ms_distify.verify.watch.fake_data_files import MARKER, CannotFake, fake_for, write

np = pytest.importorskip("numpy")


@dataclass
class Made:
    files: tuple[str, ...]
    rows: int


def one(
    kind: str, path: Path, columns: tuple[str, ...] = (), *, rows: int = 30, seed: int = 0, scratch: str = ""
) -> Made:
    files, count = write(kind, str(path), {"columns": columns}, rows, seed, scratch)
    return Made(tuple(files), count)


def listing(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file() and path.name != MARKER}


# -- formats ---------------------------------------------------------------------------------------------------------


def test_mnist(tmp_path: Path) -> None:
    made = one("MnistDataset", tmp_path / "deep" / "mnist")
    assert made.rows == 30
    assert listing(tmp_path) == {
        f"deep/mnist/{part}-{what}" for part in ("train", "t10k") for what in ("images-idx3-ubyte", "labels-idx1-ubyte")
    }
    assert {name for name in made.files if not name.endswith(MARKER)} == {
        str(tmp_path / name) for name in listing(tmp_path)
    }
    rows = set()
    for part in ("train", "t10k"):
        images = (tmp_path / "deep" / "mnist" / f"{part}-images-idx3-ubyte").read_bytes()
        labels = (tmp_path / "deep" / "mnist" / f"{part}-labels-idx1-ubyte").read_bytes()
        assert struct.unpack(">IIII", images[:16]) == (2051, 30, 28, 28)
        assert struct.unpack(">II", labels[:8]) == (2049, 30)
        assert len(labels) == 38
        assert max(labels[8:]) < 10
        rows |= {images[start : start + 784] for start in range(16, len(images), 784)}
    assert len(rows) == 60, "rows of both parts differ, all of them"


@pytest.mark.parametrize(
    ("kind", "names", "heads"),
    [
        pytest.param("Cifar10Dataset", {"data_batch_1.bin": 10_000, "test_batch.bin": 10_000}, [10], id="10"),
        pytest.param("Cifar100Dataset", {"train.bin": 50_000, "test.bin": 10_000}, [20, 100], id="100"),
    ],
)
def test_cifar(tmp_path: Path, kind: str, names: dict[str, int], heads: list[int]) -> None:
    made = one(kind, tmp_path / "cifar")
    assert made.rows == next(iter(names.values()))
    assert listing(tmp_path / "cifar") == set(names)
    pictures = set()
    for name, count in names.items():
        records = np.fromfile(tmp_path / "cifar" / name, np.uint8).reshape(count, len(heads) + 3072)
        for column, classes in enumerate(heads):
            assert set(records[:, column]) == set(range(classes))
        pictures |= {hash(picture.tobytes()) for picture in records[:, len(heads) :]}
    assert len(pictures) == sum(names.values())


@pytest.mark.parametrize("ending", [".png", ".jpg", ".JPEG"])
def test_image_folder(tmp_path: Path, ending: str) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed; it comes with MindSpore")
    fake_for("ImageFolderDataset", str(tmp_path / "train"), {"extensions": [ending]}, rows=9)
    fake_for("ImageFolderDataset", str(tmp_path / "val"), {"extensions": [ending]}, rows=9)
    names = listing(tmp_path)
    assert len(names) == 18
    assert {name.rsplit("/", 1)[0] for name in names} == {
        f"{part}/class{number}" for part in ("train", "val") for number in (0, 1)
    }
    pixels = set()
    for name in names:
        assert name.endswith(ending)
        picture = image.open(io.BytesIO((tmp_path / name).read_bytes()))
        picture.load()  # PNG: checks the sums of its parts
        assert (picture.size, picture.mode) == ((224, 224), "RGB")
        pixels.add(picture.tobytes())
    assert len(pixels) == 18


def test_classes_that_the_program_names(tmp_path: Path) -> None:
    fake_for("ImageFolderDataset", str(tmp_path / "x"), {"class_indexing": {"cat": 0, "dog": 1, "eel": 2}}, rows=6)
    assert {name.split("/")[0] for name in listing(tmp_path / "x")} == {"cat", "dog", "eel"}


def csv(path: Path) -> list[list[str]]:
    return [line.split(",") for line in path.read_text().splitlines()]


def test_text(tmp_path: Path) -> None:
    one("TextFileDataset", tmp_path / "a.txt")
    one("TextFileDataset", tmp_path / "b.txt")
    lines = [line for name in "ab" for line in (tmp_path / f"{name}.txt").read_text().splitlines()]
    assert len(lines) == len(set(lines)) == 60


@pytest.mark.parametrize(
    ("columns", "highest"),
    [
        # Labels must be as small as can be: the digits of 0..29 in the smallest base that has enough of them.
        pytest.param(("a", "b", "c", "d", "e", "f"), 1, id="six integers: binary"),
        pytest.param(("a", "label"), 5, id="two integers: base 6"),
        pytest.param(("a",), 29, id="one integer"),
        pytest.param(("x:float32", "label:int32"), 1, id="a float tells rows apart"),
    ],
)
def test_csv(tmp_path: Path, columns: tuple[str, ...], highest: int) -> None:
    one("CSVDataset", tmp_path / "a.csv", columns)
    rows = csv(tmp_path / "a.csv")
    assert len(rows) == 30
    assert len(set(map(tuple, rows))) == 30
    assert all(len(row) == len(columns) for row in rows)
    integers = [int(value) for row in rows for name, value in zip(columns, row) if "float" not in name]
    assert (min(integers), max(integers)) == (0, highest)


def test_files_of_one_set_have_different_rows(tmp_path: Path) -> None:
    paths = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    for path in paths:
        fake_for("CSVDataset", path, {"column_names": ["a", "b"], "dataset_files": paths}, rows=30)
    rows = [tuple(row) for path in paths for row in csv(Path(path))]
    assert len(rows) == len(set(rows)) == 60


def crc32c(data: bytes) -> int:
    """Bit by bit, as the definition says."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_tf_record_frames(tmp_path: Path) -> None:
    assert crc32c(b"123456789") == 0xE3069283, "the check value of CRC-32C"
    one("TFRecordDataset", tmp_path / "a.tfrecord", ("label:int64", "points:float32:2"))
    data = (tmp_path / "a.tfrecord").read_bytes()
    records = []
    while data:
        (size,) = struct.unpack("<Q", data[:8])
        for part, masked in ((data[:8], data[8:12]), (data[12 : 12 + size], data[12 + size : 16 + size])):
            crc = crc32c(part)
            assert struct.unpack("<I", masked)[0] == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        records.append(data[12 : 12 + size])
        data = data[16 + size :]
    assert len(records) == len(set(records)) == 30


def test_tf_record_schema_file(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"datasetType": "TF", "columns": {"word": {"type": "string", "rank": 1}}}')
    fake_for("TFRecordDataset", str(tmp_path / "data" / "a.tfrecord"), {"schema": str(schema)}, rows=3)
    data = (tmp_path / "data" / "a.tfrecord").read_bytes()
    assert data.count(b"word") == 3


@pytest.mark.parametrize(
    ("kind", "path", "columns"),
    [
        pytest.param("MnistDataset", "x", (), id="MNIST"),
        pytest.param("ImageFolderDataset", "x", (), id="pictures"),
        pytest.param("CSVDataset", "x.csv", ("a:float32", "b"), id="CSV"),
        pytest.param("TFRecordDataset", "x", ("a:bytes", "b:int32:4", "c:float64"), id="TFRecord"),
    ],
)
def test_a_seed_gives_the_same_bytes(tmp_path: Path, kind: str, path: str, columns: tuple[str, ...]) -> None:
    def made(seed: int) -> dict[str, bytes]:
        files = one(kind, tmp_path / "data" / path, columns, seed=seed, rows=5).files
        content = {name: Path(name).read_bytes() for name in files if not name.endswith(MARKER)}
        for name in files:
            Path(name).unlink()
        (tmp_path / "data" / MARKER).unlink(missing_ok=True)
        for folder, _, _ in os.walk(tmp_path / "data", topdown=False):
            os.rmdir(folder)
        return content

    first = made(1)
    assert first
    assert made(1) == first
    assert made(2) != first


# -- what is never touched -------------------------------------------------------------------------------------------


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")
    }


@pytest.mark.parametrize(
    ("kind", "path", "message"),
    [
        pytest.param("MnistDataset", "full", "holds files already", id="a folder that holds something"),
        pytest.param("Cifar10Dataset", "full/a.csv", "is a file, not a folder", id="a file in place of a folder"),
        pytest.param("MnistDataset", "full/a.csv/b", "cannot write", id="a file in place of a folder around it"),
        pytest.param("CSVDataset", "full/a.csv", "there already", id="a file that is there"),
        pytest.param("CSVDataset", "full/b.csv", "holds other files", id="a file beside others"),
        pytest.param("TextFileDataset", "full/[ab].txt", "pattern", id="a pattern that cannot be met"),
    ],
)
def test_nothing_is_written_over(tmp_path: Path, kind: str, path: str, message: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.csv").write_text("mine")
    before = snapshot(tmp_path)
    with pytest.raises(CannotFake, match=message) as error:
        one(kind, tmp_path / path, ("a",))
    assert str(error.value).startswith(kind)
    assert "\n" not in str(error.value)
    assert snapshot(tmp_path) == before


def test_where_nothing_can_be_written() -> None:
    place = Path("/proc/ms-distify/mnist")
    if not place.parent.parent.is_dir():
        pytest.skip("no /proc here, in which nobody can make a folder")
    with pytest.raises(CannotFake, match="MnistDataset: cannot write /proc/ms-distify/mnist: "):
        one("MnistDataset", place)


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert one("MnistDataset", tmp_path / "empty").files


def test_files_beside_others_where_that_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("mine")
    one("CSVDataset", tmp_path / "a.csv", ("a",), rows=3, scratch=str(tmp_path))
    assert listing(tmp_path) == {"train.py", "a.csv"}
    with pytest.raises(CannotFake, match="there already"):
        one("CSVDataset", tmp_path / "train.py", ("a",), rows=3, scratch=str(tmp_path))
    assert (tmp_path / "train.py").read_text() == "mine"


@pytest.mark.parametrize(
    ("kind", "path"), [pytest.param("MnistDataset", "x", id="folder"), pytest.param("CSVDataset", "x/a.csv", id="file")]
)
def test_what_was_made_before_stays(tmp_path: Path, kind: str, path: str) -> None:
    assert one(kind, tmp_path / path, ("a",), seed=1).files
    before = snapshot(tmp_path)
    again = one(kind, tmp_path / path, ("a",), seed=2)
    assert again.files == ()
    assert snapshot(tmp_path) == before


def test_many_processes_ask_at_once(tmp_path: Path) -> None:
    program = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("fake", {fake_data_files.__file__!r})
fake = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fake)
assert "ms_distify" not in sys.modules
sys.stdin.readline()
for turn in range(10):
    fake.fake_for("MnistDataset", f"mnist{{turn}}", {{}}, rows=20)
    fake.fake_for("CSVDataset", f"csv/{{turn}}.csv", {{"column_names": ["a", "b"]}}, rows=20)
"""
    ranks = [
        subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for rank in ranks:
        assert rank.stdin is not None
        rank.stdin.write(b"go\n")
        rank.stdin.flush()
    for rank in ranks:
        _, errors = rank.communicate(timeout=60)
        assert rank.returncode == 0, errors.decode()
    assert len(listing(tmp_path)) == 50
    assert all(len(csv(tmp_path / "csv" / f"{turn}.csv")) == 20 for turn in range(10))
    left = {path.name for path in tmp_path.rglob(MARKER + ".*")}
    assert not left, "no working folders"


# -- what cannot be made up ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "path", "columns", "message"),
    [
        pytest.param("VOCDataset", "x", (), "VOCDataset: its format .* give the program its real data", id="format"),
        pytest.param("MindDataset", "x", (), "MindDataset: .*add_schema", id="MindRecord without columns"),
        pytest.param(
            "MindDataset", "x", ("a",), "MindDataset: values of type \\? .column a.", id="a column without a type"
        ),
        pytest.param("TFRecordDataset", "x", (), "TFRecordDataset: .* schema", id="TFRecord without a schema"),
        pytest.param("CSVDataset", "x", (), "CSVDataset: .* column_names", id="CSV without columns"),
        pytest.param("TFRecordDataset", "x", ("a:complex64",), "TFRecordDataset: .* complex64", id="type"),
    ],
)
def test_cannot(tmp_path: Path, kind: str, path: str, columns: tuple[str, ...], message: str) -> None:
    with pytest.raises(CannotFake, match=message) as error:
        one(kind, tmp_path / path, columns)
    assert "\n" not in str(error.value)
    assert snapshot(tmp_path) == {}, "nothing is left"


def test_without_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    spec = importlib.util.spec_from_file_location("alone", fake_data_files.__file__)
    assert spec is not None
    assert spec.loader is not None
    alone = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(alone)
    with pytest.raises(alone.CannotFake, match="pip install numpy"):
        alone.fake_for("MnistDataset", str(tmp_path / "x"), {})


def test_classes_that_read_nothing() -> None:
    assert one("GeneratorDataset", Path("x")).files == ()
