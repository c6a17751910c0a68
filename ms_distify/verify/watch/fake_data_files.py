"""Writes small made-up data sets in the formats that MindSpore's dataset classes read.

This file stands alone: it is loaded by its path in the process of the program under test, where ms-distify need not be
installed, and needs the standard library and NumPy (Pillow for JPEG, MindSpore for MindRecord; both are where MindSpore
is). It is kept to what Python 3.7 knows.

Every row of a data set differs from every other: pictures carry the number of their row as black and white blocks, in
other data a number or text does. Labels are 0 and 1 where the format does not say how many classes
there are, for every classifier has these two.

Nothing is written over. What is made appears at once and whole, so that ranks that all ask for the same data get it
once; a hidden file beside it tells what is made up.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

try:
    import numpy as np
except ImportError:  # where MindSpore is missing too
    np = None  # type: ignore[assignment,unused-ignore]

ROWS = 256
CIFAR_RECORDS = (
    10_000  # a file; MindSpore refuses files with fewer (measured, 2.10), and CIFAR-100 trains on five times that
)
MARKER = ".ms-distify-fake-data"
_GRID = 7  # blocks along the side of a picture, of which the first three rows carry the number of the row
_BITS = 21
_SIDE = 224  # of the pictures of a folder: what crops for ImageNet need

# The parameter of each class that says where its data is.
PATHS = {
    "MnistDataset": "dataset_dir",
    "FashionMnistDataset": "dataset_dir",
    "KMnistDataset": "dataset_dir",
    "Cifar10Dataset": "dataset_dir",
    "Cifar100Dataset": "dataset_dir",
    "ImageFolderDataset": "dataset_dir",
    "MindDataset": "dataset_files",
    "CSVDataset": "dataset_files",
    "TextFileDataset": "dataset_files",
    "TFRecordDataset": "dataset_files",
}
_Array = Any  # of NumPy, which is not typed alike in all its releases

# Classes that read no files.
NEEDS_NOTHING = ("GeneratorDataset", "NumpySlicesDataset", "PaddedDataset", "RandomDataset")


class CannotFake(Exception):
    """Data of this kind cannot be made up, or not there; the message is one line and says what to do instead."""


class Job(NamedTuple):
    """What to write.

    Attributes:
        kind: the dataset class.
        folder: where.
        name: of the file, where the format is one file.
        arguments: of the constructor.
        rows: how many.
        rng: draws what is not given.
        first: the number of the first row.
        total: how many rows all files of the data set have.
    """

    kind: str
    folder: str
    name: str
    arguments: dict[str, Any]
    rows: int
    rng: np.random.RandomState
    first: int
    total: int


class Column(NamedTuple):
    """A column of a row: ``kind`` is "int", "float", "bytes" or "string", ``type`` what the program calls that."""

    name: str
    kind: str
    type: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many values it has."""
        return int(np.prod(self.shape, dtype=np.int64))


def fake_for(
    kind: str, path: str, arguments: dict[str, Any], rows: int = ROWS, seed: int = 0, scratch: str = ""
) -> None:
    """Make the data that a dataset constructor asks for; do nothing where it was made before.

    Args:
        kind: the class of ``mindspore.dataset``.
        path: a folder, or one file or pattern of files, as the program passes it.
        arguments: what the program passes to the constructor, by parameter; and, for formats whose columns it does
            not tell, "columns": texts like "label:int32", "image:bytes", "points:float32:3x4".
        rows: how many; of CIFAR files there are always 10,000.
        seed: of the made-up values.
        scratch: a folder below which files may be made beside what is there.

    Raises:
        CannotFake: nothing was written.
    """
    write(kind, path, arguments, rows, seed, scratch)


def write(
    kind: str, path: str, arguments: dict[str, Any], rows: int, seed: int, scratch: str = ""
) -> tuple[list[str], int]:
    """Like ``fake_for``; return the files made, and how many rows a program that trains reads from them."""
    if kind in NEEDS_NOTHING:
        return [], 0
    if np is None:
        raise CannotFake(f"{kind}: data is made up with NumPy, which is not here; pip install numpy")
    if kind not in _FORMATS:
        raise CannotFake(f"{kind}: its format is not one of those that can be made up; give the program its real data")
    if rows < 1 or 2 * rows >= 2**_BITS:  # rows to test with are numbered on
        raise CannotFake(f"{kind}: {rows} rows cannot be made up")
    whole = PATHS[kind] == "dataset_dir"
    target = os.path.realpath(path) if whole else _no_pattern(kind, os.path.abspath(path))
    if _made_before(kind, target, scratch):
        return [], CIFAR_RECORDS * _CIFAR[kind] if kind in _CIFAR else rows
    folder = target if whole else os.path.dirname(target)
    outer = _nearest(os.path.dirname(folder) if whole else folder)
    work = ""
    try:
        work = tempfile.mkdtemp(prefix=MARKER + ".", dir=outer)
        rng = np.random.RandomState([seed, zlib.crc32((kind + target).encode("utf-8", "surrogateescape"))])
        inner = os.path.join(work, "data")
        os.mkdir(inner)
        first, total = _place(path, arguments.get(PATHS[kind]), rows)
        wrote = _FORMATS[kind](Job(kind, inner, os.path.basename(target), arguments, rows, rng, first, total))
        files = _publish_folder(inner, target) if whole else _publish_files(inner, folder)
    except OSError as error:
        raise CannotFake(f"{kind}: cannot write {target}: {error.strerror or error}") from error
    finally:
        if work:
            shutil.rmtree(work, ignore_errors=True)
    return files, wrote


# -- where -----------------------------------------------------------------------------------------------------------


def _no_pattern(kind: str, path: str) -> str:
    """Return a file that a pattern of files matches; another path as it is."""
    if PATHS[kind] == "dataset_dir" or not glob.has_magic(path):
        return path
    name = os.path.basename(path).replace("*", "0").replace("?", "0")
    if glob.has_magic(os.path.join(os.path.dirname(path), name)):
        raise CannotFake(f"{kind}: no file can be made up for the pattern {path}; give a plain path")
    return os.path.join(os.path.dirname(path), name)


def _place(path: str, given: Any, rows: int) -> tuple[int, int]:
    """Return the number of the first row of a file, and how many rows all files of its data set have."""
    files = [os.path.abspath(str(file)) for file in given] if isinstance(given, (list, tuple)) else []
    if os.path.abspath(path) not in files:
        return 0, rows
    return files.index(os.path.abspath(path)) * rows, len(files) * rows


def _made_before(kind: str, target: str, scratch: str) -> bool:
    """Whether the target is there and made up.

    Raises:
        CannotFake: something else is in the way.
    """
    folder = target if PATHS[kind] == "dataset_dir" else os.path.dirname(target)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise CannotFake(f"{kind}: {folder} is a file, not a folder")
    held = set(os.listdir(folder)) if os.path.isdir(folder) else set()
    listed = _listed(folder)
    if folder == target:
        if held and MARKER not in held:
            raise CannotFake(f"{kind}: {folder} holds files already, nothing is made up there")
        return bool(held)
    if os.path.basename(target) in held:
        if os.path.basename(target) in listed:
            return True
        raise CannotFake(f"{kind}: {target} is there already and is not written over")
    others = {name for name in held if not name.startswith(MARKER)} - listed
    below = scratch and os.path.realpath(folder).startswith(os.path.join(os.path.realpath(scratch), ""))
    if others and not below and os.path.realpath(folder) != os.path.realpath(scratch or os.devnull):
        raise CannotFake(f"{kind}: {folder} holds other files, nothing is made up beside them")
    return False


def _listed(folder: str) -> set[str]:
    """Return the names of the made-up files of a folder."""
    try:
        with open(os.path.join(folder, MARKER), encoding="utf-8", errors="surrogateescape") as file:
            return set(file.read().splitlines())
    except OSError:
        return set()


def _nearest(folder: str) -> str:
    """Return the folder or the nearest one around it that is there."""
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def _publish_folder(inner: str, target: str) -> list[str]:
    """Put a folder in its place, unless another process was faster."""
    names = [os.path.relpath(os.path.join(at, name), inner) for at, _, found in os.walk(inner) for name in found]
    _note(inner, names)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        os.rename(inner, target)  # also over an empty folder, never over one that holds something
    except OSError:
        if MARKER in os.listdir(target):
            return []
        raise
    return sorted(os.path.join(target, name) for name in [*names, MARKER])


def _publish_files(inner: str, folder: str) -> list[str]:
    """Put files in their place, except those that another process put there first."""
    os.makedirs(folder, exist_ok=True)
    names = sorted(os.listdir(inner), reverse=True)  # x.mindrecord.db in front of x.mindrecord
    _note(folder, names)
    made = []
    for name in names:
        try:
            os.link(os.path.join(inner, name), os.path.join(folder, name))  # fails where the name is taken
        except FileExistsError:
            continue
        made.append(os.path.join(folder, name))
    return sorted(made)


def _note(folder: str, names: Sequence[str]) -> None:
    with open(os.path.join(folder, MARKER), "a", encoding="utf-8", errors="surrogateescape") as file:
        file.write("".join(name + "\n" for name in names))


# -- pictures --------------------------------------------------------------------------------------------------------


def _pictures(rng: np.random.RandomState, first: int, count: int, channels: int, block: int, side: int) -> _Array:
    """Return pictures of coloured blocks, shape (count, channels, side, side)."""
    blocks = rng.randint(0, 256, (count, channels, _GRID, _GRID)).astype(np.uint8)
    numbers = np.arange(first, first + count)
    bits = (numbers[:, None] >> np.arange(_BITS) & 1) * 255
    blocks[:, :, : _BITS // _GRID] = bits.reshape(count, 1, _BITS // _GRID, _GRID)
    large = blocks.repeat(block, axis=2).repeat(block, axis=3)
    room = side - _GRID * block
    return np.pad(large, ((0, 0), (0, 0), (0, room), (0, room)), mode="edge")


def _png(picture: _Array) -> bytes:
    """Return a PNG file of a picture, shape (3, side, side)."""
    side = picture.shape[1]
    rows = picture.transpose(1, 2, 0).reshape(side, 3 * side)
    lines = np.concatenate([np.zeros((side, 1), np.uint8), rows], axis=1)  # in front of each its filter: none
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines.tobytes(), 1)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def _jpeg(path: str, picture: _Array) -> None:
    try:
        from PIL import Image
    except ImportError:
        raise CannotFake("ImageFolderDataset: JPEG files need Pillow; pip install pillow") from None
    Image.fromarray(picture.transpose(1, 2, 0)).save(path, "JPEG", quality=90)


def _mnist(job: Job) -> int:
    for number, part in enumerate(("train", "t10k")):
        pictures = _pictures(job.rng, number * job.rows, job.rows, 1, 4, 28)
        with open(os.path.join(job.folder, part + "-images-idx3-ubyte"), "wb") as file:
            file.write(struct.pack(">IIII", 2051, job.rows, 28, 28) + pictures.tobytes())
        with open(os.path.join(job.folder, part + "-labels-idx1-ubyte"), "wb") as file:
            file.write(struct.pack(">II", 2049, job.rows) + job.rng.randint(0, 10, job.rows).astype(np.uint8).tobytes())
    return job.rows


_CIFAR = {"Cifar10Dataset": 1, "Cifar100Dataset": 5}


def _cifar(job: Job) -> int:
    ten = job.kind == "Cifar10Dataset"
    first = 0
    for name, times in (
        ("data_batch_1.bin" if ten else "train.bin", _CIFAR[job.kind]),
        ("test_batch.bin" if ten else "test.bin", 1),
    ):
        with open(os.path.join(job.folder, name), "wb") as file:
            for _time in range(times):
                labels = [job.rng.randint(0, classes, (CIFAR_RECORDS, 1)) for classes in ((10,) if ten else (20, 100))]
                pictures = _pictures(job.rng, first, CIFAR_RECORDS, 3, 4, 32).reshape(CIFAR_RECORDS, -1)
                file.write(np.concatenate([*labels, pictures], axis=1).astype(np.uint8).tobytes())
                first += CIFAR_RECORDS
    return CIFAR_RECORDS * _CIFAR[job.kind]


def _image_folder(job: Job) -> int:
    classes = [str(name) for name in job.arguments.get("class_indexing") or ("class0", "class1")]
    ending = str((job.arguments.get("extensions") or [".png"])[0])
    if ending.lower() not in (".png", ".jpg", ".jpeg"):
        raise CannotFake(f"{job.kind}: pictures in {ending} files cannot be made up; give the real ones")
    for name in classes:
        os.mkdir(os.path.join(job.folder, name))
    for number in range(job.rows):
        picture = _pictures(job.rng, number, 1, 3, _SIDE // _GRID, _SIDE)[0]
        path = os.path.join(job.folder, classes[number % len(classes)], f"{number:06d}{ending}")
        if ending.lower() != ".png":
            _jpeg(path, picture)
            continue
        with open(path, "wb") as file:
            file.write(_png(picture))
    return job.rows


# -- tables ----------------------------------------------------------------------------------------------------------


def _columns(job: Job) -> list[Column]:
    """Return the columns that the program says its files have; none where it does not say."""
    known = job.arguments.get("columns") or ()
    if job.kind == "TFRecordDataset" and not known:
        return _schema(job.arguments.get("schema"))
    return [_column(job.kind, *[*str(text).split(":"), "", ""][:3]) for text in known]


def _column(kind: str, name: str, type_: str, shape: str) -> Column:
    sort = next((k for k in ("int", "float", "bytes", "string") if k in type_), "int" if type_ == "bool" else "")
    if not sort:
        raise CannotFake(f"{kind}: values of type {type_ or '?'} (column {name}) cannot be made up; give the real data")
    sizes = [int(size) for size in shape.split("x") if size]
    return Column(name, sort, type_, tuple(size if size > 0 else 8 for size in sizes))


def _schema(schema: Any) -> list[Column]:
    """Return the columns of a ``mindspore.dataset.Schema`` or of the file of one."""
    if hasattr(schema, "to_json"):
        text = schema.to_json()
    elif isinstance(schema, str) and os.path.isfile(schema):
        with open(schema, encoding="utf-8") as file:
            text = file.read()
    else:
        return []
    found = json.loads(text)["columns"]
    if isinstance(found, dict):
        found = [dict(column, name=name) for name, column in found.items()]
    columns = []
    for column in found:
        shape = "x".join(str(size) for size in column.get("shape", ()))
        if column["type"] in ("uint8", "int8") and (not shape or shape == "-1"):
            columns.append(_column("TFRecordDataset", column["name"], "bytes", ""))  # an encoded picture
        else:
            columns.append(_column("TFRecordDataset", column["name"], column["type"], shape))
    return columns


def _rows(columns: Sequence[Column], job: Job) -> Iterator[list[Any]]:
    """Yield rows: for each column an array, or bytes or text; each row is another.

    Whole numbers are as small as they can be, for they may be labels: where nothing else tells rows apart, they are the
    digits of the row's number in the smallest base that has enough of them.
    """
    slots = sum(column.size for column in columns if column.kind == "int")
    told = any(column.kind != "int" for column in columns)
    base = 2
    while not told and base ** min(slots, 64) < job.total:
        base += 1
    powers = [base ** (slots - 1 - slot) if slots - 1 - slot < 64 else 0 for slot in range(slots)]
    for number in range(job.first, job.first + job.rows):
        free = job.rng.randint(0, base, slots)
        # Of many places the front ones are beyond any number and are drawn.
        digits = [number // power % base if 0 < power < job.total else draw for power, draw in zip(powers, free)]
        row: list[Any] = []
        for column in columns:
            if column.kind == "int":
                row.append(np.array(digits[: column.size]).astype(column.type).reshape(column.shape))
                digits = digits[column.size :]
            elif column.kind == "float":
                values = job.rng.uniform(0, 1, column.size)
                values[:1] = (number + values[:1] / 2) / job.total  # no two rows the same
                row.append(values.astype(column.type).reshape(column.shape))
            elif column.kind == "bytes":
                row.append(_png(_pictures(job.rng, number, 1, 3, 9, 64)[0]))
            else:
                row.append(f"row {number} of made-up text")
        yield row


def _csv(job: Job) -> int:
    names = job.arguments.get("column_names") or job.arguments.get("columns")
    if not names:
        raise CannotFake("CSVDataset: the program names no columns; give the real file, or pass column_names")
    defaults = list(job.arguments.get("column_defaults") or ())
    columns = []
    for index, text in enumerate(names):
        default = defaults[index] if index < len(defaults) else ""
        # Numbers can be read as text, but text not as a number.
        real = isinstance(default, float) or "float" in str(text).partition(":")[2]
        columns.append(_column(job.kind, str(text).partition(":")[0], "float32" if real else "int64", ""))
    between = str(job.arguments.get("field_delim") or ",")
    with open(os.path.join(job.folder, job.name), "w", encoding="utf-8", newline="\n") as file:
        for row in _rows(columns, job):
            file.write(between.join(f"{value.item():.9g}" for value in row) + "\n")
    return job.rows


def _text(job: Job) -> int:
    tag = job.rng.randint(0, 2**31 - 1)
    with open(os.path.join(job.folder, job.name), "w", encoding="utf-8", newline="\n") as file:
        for number in range(job.first, job.first + job.rows):
            file.write(f"row {number} of made-up text {tag}\n")
    return job.rows


def _mind_record(job: Job) -> int:
    columns = _columns(job)
    if not columns:
        raise CannotFake(
            "MindDataset: the program does not tell the types of its columns; give the real file, or keep the call of "
            "FileWriter.add_schema in the program"
        )
    try:
        from mindspore.mindrecord import FileWriter  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise CannotFake("MindDataset: MindRecord files need MindSpore to be written; pip install mindspore") from None
    writer = FileWriter(os.path.join(job.folder, job.name), 1)
    writer.add_schema({column.name: _mind_record_type(column) for column in columns}, "made up")
    data = []
    for row in _rows(columns, job):
        values = [value.item() if isinstance(value, np.ndarray) and not value.shape else value for value in row]
        data.append(dict(zip([column.name for column in columns], values)))
    writer.write_raw_data(data)
    writer.commit()
    return job.rows


def _mind_record_type(column: Column) -> dict[str, Any]:
    if column.shape and column.kind in ("int", "float"):
        return {"type": column.type, "shape": list(column.shape)}
    return {"type": column.type}


# -- TFRecord --------------------------------------------------------------------------------------------------------


def _tf_record(job: Job) -> int:
    columns = _columns(job)
    if not columns:
        raise CannotFake("TFRecordDataset: the types of its columns are in no schema; give the real files, or a schema")
    if job.arguments.get("compression_type"):
        raise CannotFake("TFRecordDataset: compressed files cannot be made up; give the real files")
    with open(os.path.join(job.folder, job.name), "wb") as file:
        for row in _rows(columns, job):
            entries = [
                _field(1, _field(1, column.name.encode()) + _field(2, _feature(column, value)))
                for column, value in zip(columns, row)
            ]
            data = _field(1, b"".join(entries))  # an Example with its Features
            size = struct.pack("<Q", len(data))
            file.write(size + _checksum(size) + data + _checksum(data))
    return job.rows


def _feature(column: Column, value: Any) -> bytes:
    """Return a Feature message: a list of bytes (1), of floats (2) or of whole numbers (3)."""
    if isinstance(value, bytes):
        return _field(1, _field(1, value))
    if isinstance(value, str):
        return _field(1, _field(1, value.encode()))
    if column.kind == "float":
        return _field(2, _field(1, value.astype("<f4").tobytes()))
    if column.type in ("uint8", "int8"):
        return _field(1, _field(1, value.tobytes()))
    return _field(3, _field(1, b"".join(_varint(int(number)) for number in value.ravel())))


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _field(number: int, data: bytes) -> bytes:
    """Return a field of a message that holds bytes."""
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)  # CRC-32C, Castagnoli
        table.append(value)
    return table


_CRC = _crc_table()


def _checksum(data: bytes) -> bytes:
    """Return the masked CRC-32C that stands behind each part of a TFRecord."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


_FORMATS: dict[str, Callable[[Job], int]] = {
    "MnistDataset": _mnist,
    "FashionMnistDataset": _mnist,
    "KMnistDataset": _mnist,
    "Cifar10Dataset": _cifar,
    "Cifar100Dataset": _cifar,
    "ImageFolderDataset": _image_folder,
    "MindDataset": _mind_record,
    "CSVDataset": _csv,
    "TextFileDataset": _text,
    "TFRecordDataset": _tf_record,
}
