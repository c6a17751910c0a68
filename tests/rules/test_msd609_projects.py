"""Training data that is built in other files of the project (MSD609, MSD201)."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import CHANGED, HEAD, REFUSED, TRAINING

from ms_distify import Conversion, convert

EVAL = "model.eval(test)\n"
CREATE = "import mindspore.dataset as ds\ndef create(path):\n    return ds.MnistDataset(path).batch(4)\n"
CREATED = """\
import mindspore.dataset as ds
def create(path, num_shards=None, shard_id=None):
    return ds.MnistDataset(path, num_shards=num_shards, shard_id=shard_id).batch(4)
"""


def project(folder: Path, files: dict[str, str], *named: str) -> Conversion:
    """Write files and convert train.py among them; check that a second run changes nothing."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    entry = folder / "train.py"
    also = frozenset((folder / name).resolve() for name in named)
    result = convert(entry.read_bytes(), "train.py", file=entry, named=also)
    if not result.refused:
        entry.write_bytes(result.output)
        for file, content in result.modules:
            file.write_bytes(content)
        again = convert(entry.read_bytes(), "train.py", file=entry, named=also)
        assert not again.refused, again.findings
        assert again.output == result.output
        assert again.modules == ()
    return result


def both(imports: str, call: str) -> str:
    return f'{HEAD}{imports}\ntrain = {call}("/a")\ntest = {call}("/b")\n{TRAINING}{EVAL}'


FORMS = {
    "module": ("data.py", "import data", "data.create"),
    "from": ("data.py", "from data import create", "create"),
    "as": ("data.py", "from data import create as make", "make"),
    "star": ("data.py", "from data import *", "create"),
    "folder": ("src/data.py", "from src.data import create", "create"),
    "folder as module": ("src/data.py", "import src.data", "src.data.create"),
    "module of folder": ("src/data.py", "from src import data", "data.create"),
    "package": ("src/__init__.py", "from src import create", "create"),
    "in a try": ("data.py", "try:\n    from data import create\nexcept ImportError:\n    raise", "create"),
    "like a library": ("random.py", "import random", "random.create"),
}


@pytest.mark.parametrize(("file", "imports", "call"), [pytest.param(*form, id=name) for name, form in FORMS.items()])
def test_named_file_is_rewritten_with_the_script(tmp_path: Path, file: str, imports: str, call: str) -> None:
    result = project(tmp_path, {"train.py": both(imports, call), file: CREATE}, file)
    assert not result.refused, result.findings
    assert (tmp_path / file).read_text() == CREATED
    text = (tmp_path / "train.py").read_text()
    assert f'train = {call}("/a", num_shards=rank_size, shard_id=rank_id)\n' in text
    assert f'test = {call}("/b")\n' in text


@pytest.mark.parametrize(("file", "imports", "call"), [pytest.param(*form, id=name) for name, form in FORMS.items()])
def test_file_that_was_not_named_is_not_touched(tmp_path: Path, file: str, imports: str, call: str) -> None:
    result = project(tmp_path, {"train.py": both(imports, call), file: CREATE})
    [finding] = [f for f in result.findings if f.status == REFUSED]
    assert (finding.code, finding.path) == ("MSD609", file)
    assert f"ms-distify --in-place train.py {file}" in finding.message
    assert result.output == result.original
    assert (tmp_path / file).read_text() == CREATE


def test_the_command_is_said_once_for_several_files(tmp_path: Path) -> None:
    files = {
        "train.py": both("from make import make", "make"),
        "make.py": "from data import create\ndef make(path):\n    return create(path)\n",
        "data.py": CREATE,
    }
    result = project(tmp_path, files)
    said = [(f.path, f.message) for f in result.findings if f.status == REFUSED]
    assert {path for path, _ in said} == {"make.py", "data.py"}
    commands = [message for _, message in said if "ms-distify --in-place train.py" in message]
    assert len(commands) == 1
    assert {"make.py", "data.py"} <= set(commands[0].split())


def test_relative_imports_inside_a_package(tmp_path: Path) -> None:
    files = {
        "train.py": both("from src.loaders import make", "make"),
        "src/__init__.py": "",
        "src/base/__init__.py": "",
        "src/base/data.py": CREATE,
        "src/loaders.py": "from .base.data import create\ndef make(path):\n    return create(path)\n",
    }
    result = project(tmp_path, files, "src/base/data.py", "src/loaders.py")
    assert not result.refused, result.findings
    assert (tmp_path / "src/base/data.py").read_text() == CREATED
    assert (tmp_path / "src/loaders.py").read_text() == (
        "from .base.data import create\n"
        "def make(path, num_shards=None, shard_id=None):\n"
        "    return create(path, num_shards=num_shards, shard_id=shard_id)\n"
    )


def test_circular_imports(tmp_path: Path) -> None:
    files = {
        "train.py": both("from data import create", "create"),
        "data.py": "import options\n" + CREATE,
        "options.py": "import data\nsize = 4\n",
    }
    result = project(tmp_path, files, "data.py")
    assert not result.refused, result.findings
    assert (tmp_path / "options.py").read_text() == files["options.py"]


def test_files_that_need_nothing_need_not_be_named(tmp_path: Path) -> None:
    files = {
        "train.py": HEAD + 'import net_parts\ntrain = ds.MnistDataset("/d")\n' + TRAINING,
        "net_parts.py": "import mindspore.nn as nn\nclass Part(nn.Cell):\n    pass\n",
    }
    result = project(tmp_path, files)
    assert not result.refused, result.findings
    assert result.modules == ()
    assert any(f.code == "MSD201" and f.status == CHANGED for f in result.findings)


def test_trainer_in_another_file(tmp_path: Path) -> None:
    files = {
        "train.py": """\
import mindspore as ms
from trainer import Trainer
ms.set_context(mode=0)
Trainer("/a", "/b").run()
""",
        "trainer.py": HEAD
        + """\
class Trainer:
    def __init__(self, path, other):
        self.train_data = ds.MnistDataset(path)
        self.test_data = ds.MnistDataset(other)
    def run(self):
        net = nn.Dense(4, 2)
        model = ms.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
        model.train(1, self.train_data)
        model.eval(self.test_data)
""",
    }
    result = project(tmp_path, files, "trainer.py")
    assert not result.refused, result.findings
    text = (tmp_path / "trainer.py").read_text()
    assert "def __init__(self, path, other, num_shards=None, shard_id=None):" in text
    assert "self.train_data = ds.MnistDataset(path, num_shards=num_shards, shard_id=shard_id)" in text
    assert "self.test_data = ds.MnistDataset(other)\n" in text
    assert 'Trainer("/a", "/b", num_shards=rank_size, shard_id=rank_id).run()' in (tmp_path / "train.py").read_text()


def test_what_an_imported_file_would_do_when_started_is_no_part_of_the_program(tmp_path: Path) -> None:
    own = 'if __name__ == "__main__":\n    from mindspore import Model\n    Model(make()).train(1, create("/own"))\n'
    files = {
        "train.py": f"{HEAD}from data import create\ntrain = create('/d')\n{TRAINING}",
        "data.py": f"{CREATE}{own}",
    }
    result = project(tmp_path, files, "data.py")
    assert not result.refused, result.findings
    assert (tmp_path / "data.py").read_text() == CREATED + own
    assert "train = create('/d', num_shards=rank_size, shard_id=rank_id)" in (tmp_path / "train.py").read_text()


def test_an_imported_file_keeps_the_names_that_it_uses_when_started(tmp_path: Path) -> None:
    rows = "def rows():\n    yield (1,)\n"
    own = 'if __name__ == "__main__":\n    shard_source = 1\n'
    files = {
        "train.py": f"{HEAD}from data import create\ntrain = create()\n{TRAINING}",
        "data.py": f"import mindspore.dataset as ds\n{rows}def create():\n    return ds.GeneratorDataset(rows, ['x'])\n{own}",
    }
    result = project(tmp_path, files, "data.py")
    assert not result.refused, result.findings
    assert "def shard_source_2(" in (tmp_path / "data.py").read_text()
