"""The catalog builder, on small wheels made for it."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest

from ms_distify.mindspore import build_catalog
from ms_distify.mindspore.build_catalog import CatalogError, Wheel, build, render

# A MindSpore with every way of exporting a name that the real one uses, and some that it might.
SOURCES = {
    "mindspore/__init__.py": """
        from mindspore.common import *
        from mindspore.context import set_context, ParallelMode as ParallelMode
        from mindspore.train import Model
    """,
    "mindspore/context.py": "class ParallelMode: pass\ndef set_context(**kwargs): pass\n",
    "mindspore/train.py": "class Model: pass\n",
    "mindspore/common/__init__.py": """
        from mindspore.common.tensor import Tensor
        from mindspore.common import seed
        from .seed import set_seed, _hidden
        __all__ = ["Tensor"]
        __all__ += seed.__all__
    """,
    "mindspore/common/tensor.py": "class Tensor: pass\n",
    "mindspore/common/seed.py": "__all__ = ['set_seed']\ndef set_seed(seed): pass\ndef _hidden(): pass\n",
    "mindspore/communication/__init__.py": "from .management import init, get_rank, get_group_size\n",
    "mindspore/communication/management.py": """
        def init(backend_name=None): pass
        def get_rank(group="x"): pass
        def get_group_size(group="x"): pass
    """,
    "mindspore/dataset/__init__.py": """
        from .engine import *
        from .engine.datasets import *
        from .engine.samplers import *
        __all__ = []
        __all__.extend(engine.__all__)
    """,
    "mindspore/dataset/engine/__init__.py": """
        from .datasets import *
        from .datasets_vision import *
        from .samplers import DistributedSampler
        __all__ = ["OneDataset", "TwoDataset",  # Vision
                   "KeywordDataset", "AliasDataset", "ConditionalDataset", "DistributedSampler", "zip"]
    """,
    "mindspore/dataset/engine/datasets.py": '''
        import copy
        from .validators import check_batch
        from mindspore._c_expression import Node
        def zip(datasets):
            return ZipDataset(datasets)
        class Dataset:
            def __init__(self, children=None, cache=None): pass
            @property
            def size(self): return 1
            @check_batch
            def batch(self, batch_size, drop_remainder=False, **kwargs):
                def of(row):
                    return row
                return BatchDataset(self, batch_size)
            def twin(self):
                return copy.deepcopy(self)
            def me(self):
                return self
            def old(self):
                return self.batch(1)
            def maybe(self, flag):
                if flag:
                    return self
                return None
            def later(self):
                return self.later()
            def split(self, sizes, randomize=True):
                parts = [self]
                return tuple(parts)
            def get_dataset_size(self): return 1
            @staticmethod
            def recv(src=0, *, group=None): pass
            def _private(self): return self
        class SourceDataset(Dataset):
            """Takes shards."""
            def __init__(self, num_samples=None, num_shards=None, shard_id=None): pass
        class MappableDataset(SourceDataset):
            def __init__(self, sampler=None, num_shards=None, shard_id=None): pass
            def use_sampler(self, new_sampler): pass
            def batch(self, batch_size, drop_remainder=False, **kwargs):
                return BatchDataset(self, batch_size)
        class BatchDataset(Dataset):
            def __init__(self, input_dataset, batch_size): pass
            def get_dataset_size(self, estimate=False): return 1
        class ZipDataset(Dataset):
            def __init__(self, datasets): pass
        class _Inner(Dataset):
            pass
        class Unknown(Node, Dataset):
            pass
    ''',
    "mindspore/dataset/engine/validators.py": "def check_batch(method):\n    return method\n",
    "mindspore/dataset/engine/datasets_vision.py": """
        from . import datasets as core
        from .datasets import Dataset, MappableDataset
        from .validators import check_batch
        try:
            import no_such
        except ImportError:
            no_such = None
        class OneDataset(MappableDataset):
            @check_batch
            def __init__(self, dataset_dir, usage='all', shuffle=Shuffle.GLOBAL, scale=1 / 2,
                         names=("a", "b=c"), num_shards=None, shard_id=None):
                pass
        class TwoDataset(OneDataset):
            pass
        class KeywordDataset(core.SourceDataset):
            def __init__(self, dataset_dir, *files, num_shards=None, shard_id=None, **kwargs): pass
        AliasDataset = OneDataset
        if True:
            class ConditionalDataset(Dataset):
                def __init__(self, first): pass
        else:
            class ConditionalDataset(Dataset):
                def __init__(self, second): pass
    """,
    "mindspore/dataset/engine/samplers.py": """
        class BuiltinSampler:
            def __init__(self, num_samples=None): pass
        class DistributedSampler(BuiltinSampler):
            def __init__(self, num_shards, shard_id, shuffle=True): pass
    """,
    "mindspore/nn/__init__.py": """
        from mindspore.nn import layer, wrap
        from mindspore.nn.cell import Cell
        from mindspore.nn.layer import *
        from mindspore.nn.wrap import *
        from mindspore.nn.optim import *
        from mindspore.nn.dynamic_lr import *
        from mindspore.nn.learning_rate_schedule import *
        from mindspore.nn.metrics import Accuracy
        __all__ = ["Cell"]
        __all__.extend(layer.__all__)
    """,
    "mindspore/nn/cell.py": "from mindspore._c_expression import Cell_\nclass Cell(Cell_): pass\n",
    "mindspore/nn/metrics.py": "class Accuracy: pass\n",
    "mindspore/nn/layer/__init__.py": """
        from mindspore.nn.layer import basic
        from mindspore.nn.layer.basic import *
        __all__ = []
        __all__.extend(basic.__all__)
    """,
    "mindspore/nn/layer/basic.py": """
        import mindspore.nn as nn
        from mindspore.nn.cell import Cell
        __all__ = ['Dense']
        class Dense(Cell): pass
        class NotExported(nn.Cell): pass
    """,
    "mindspore/nn/wrap.py": """
        from mindspore.nn.cell import Cell
        class TrainOneStepCell(Cell): pass
        class TrainOneStepWithLossScaleCell(TrainOneStepCell): pass
        class ForwardValueAndGrad(Cell): pass
        class DistributedGradReducer(Cell): pass
    """,
    "mindspore/nn/optim.py": """
        from mindspore.nn.cell import Cell
        class Optimizer(Cell): pass
        class Adam(Optimizer): pass
        class AdamOffload(Adam): pass
        class _Thor(Optimizer): pass
        def thor(net):
            if net:
                return _Thor()
            return Adam()
        def helper(net):
            return net
    """,
    "mindspore/nn/dynamic_lr.py": "def cosine_decay_lr(min_lr, max_lr): pass\n",
    "mindspore/nn/learning_rate_schedule.py": """
        from mindspore.nn.cell import Cell
        __all__ = ["WarmUpLR"]
        class LearningRateSchedule(Cell): pass
        class WarmUpLR(LearningRateSchedule): pass
    """,
}


def make_wheel(folder: Path, release: str, changes: dict[str, str] | None = None) -> Path:
    path = folder / f"mindspore-{release}-cp39-cp39-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        metadata = f"Metadata-Version: 2.1\nName: mindspore\nVersion: {release}\n"
        archive.writestr(f"mindspore-{release}.dist-info/METADATA", metadata)
        for name, source in {**SOURCES, **(changes or {})}.items():
            lines = source.strip("\n").split("\n")
            indent = len(lines[0]) - len(lines[0].lstrip())
            archive.writestr(name, "\n".join(line[indent:] for line in lines) + "\n")
    return path


# The parameters of OneDataset above, as the catalog spells them.
ONE = [
    *("dataset_dir", "usage='all'", "shuffle=Shuffle.GLOBAL", "scale=1 / 2", "names=('a', 'b=c')"),
    *("num_shards=None", "shard_id=None"),
]


@pytest.fixture
def built(tmp_path: Path) -> dict:
    return build([Wheel(make_wheel(tmp_path, "2.10.0"))])


def names(built: dict, section: str, module: str) -> set[str]:
    return {name for group in built[section][module] for name in group["names"]}


def test_which_classes_are_datasets(built: dict):
    assert set(built["datasets"]) == {
        "AliasDataset",
        "BatchDataset",
        "ConditionalDataset",
        "Dataset",
        "KeywordDataset",
        "MappableDataset",
        "OneDataset",
        "SourceDataset",
        "TwoDataset",
        "Unknown",
        "ZipDataset",
    }


@pytest.mark.parametrize(
    ("name", "params"),
    [
        pytest.param(
            "OneDataset",
            ONE,
            id="decorated, with all kinds of defaults",
        ),
        pytest.param(
            "TwoDataset",
            ONE,
            id="inherited __init__",
        ),
        pytest.param(
            "KeywordDataset",
            ["dataset_dir", "*files", "num_shards=None", "shard_id=None", "**kwargs"],
            id="var-positional, keyword-only, keywords; base by module alias",
        ),
        pytest.param("ConditionalDataset", ["first"], id="the first branch is the usual one"),
        pytest.param("Unknown", ["*args", "**kwargs"], id="a base that is not Python"),
    ],
)
def test_parameters(built: dict, name: str, params: list[str]):
    assert built["datasets"][name] == [{"params": params}]


def test_what_is_not_python_is_reported(tmp_path: Path):
    wheel = Wheel(make_wheel(tmp_path, "2.10.0"))
    build([wheel])
    assert wheel.notes == ["Unknown: base Node not followed, parameters unknown"]


def test_an_alias_has_the_class_s_parameters(built: dict):
    assert built["datasets"]["AliasDataset"] == built["datasets"]["OneDataset"]


def test_public_names_are_those_of_all(built: dict):
    assert names(built, "public", "mindspore.dataset") == {
        "AliasDataset",
        "ConditionalDataset",
        "DistributedSampler",
        "KeywordDataset",
        "OneDataset",
        "TwoDataset",
    }


@pytest.mark.parametrize(
    ("name", "records"),
    [
        pytest.param(
            "batch",
            [{"params": ["batch_size", "drop_remainder=False", "**kwargs"], "returns": "dataset"}],
            id="builds one; what an inner function returns does not count, an equal override neither",
        ),
        pytest.param("twin", [{"params": [], "returns": "dataset"}], id="copy of self"),
        pytest.param("me", [{"params": [], "returns": "dataset"}], id="self"),
        pytest.param("old", [{"params": [], "returns": "dataset"}], id="another method's dataset"),
        pytest.param("maybe", [{"params": ["flag"]}], id="not always"),
        pytest.param("later", [{"params": []}], id="recursion"),
        pytest.param(
            "split",
            [{"params": ["sizes", "randomize=True"], "returns": "datasets"}],
            id="by the explicit table",
        ),
        pytest.param("recv", [{"params": ["src=0", "*", "group=None"]}], id="static, keyword-only"),
        pytest.param(
            "get_dataset_size",
            [{"params": []}, {"classes": ["BatchDataset"], "params": ["estimate=False"]}],
            id="a class that differs",
        ),
        pytest.param(
            "use_sampler",
            [{"classes": ["MappableDataset"], "params": ["new_sampler"]}],
            id="a method that Dataset lacks",
        ),
    ],
)
def test_methods(built: dict, name: str, records: list[dict]):
    assert built["methods"][name] == records


def test_properties_and_private_methods_are_left_out(built: dict):
    assert not {"size", "_private", "__init__"} & set(built["methods"])


def test_functions_that_are_exported(built: dict):
    assert built["functions"] == {"zip": [{"params": ["datasets"], "returns": "dataset"}]}


def test_samplers(built: dict):
    assert set(built["samplers"]) == {"BuiltinSampler", "DistributedSampler"}
    assert built["samplers"]["DistributedSampler"] == [{"params": ["num_shards", "shard_id", "shuffle=True"]}]


def test_names_of_nn(built: dict):
    assert names(built, "optimizers", "mindspore.nn") == {"Adam", "AdamOffload", "Optimizer", "thor"}
    assert names(built, "train_cells", "mindspore.nn") == {
        "ForwardValueAndGrad",
        "TrainOneStepCell",
        "TrainOneStepWithLossScaleCell",
    }
    assert names(built, "cells", "mindspore.nn") == {
        "Adam",
        "AdamOffload",
        "Cell",
        "Dense",
        "DistributedGradReducer",
        "ForwardValueAndGrad",
        "Optimizer",
        "TrainOneStepCell",
        "TrainOneStepWithLossScaleCell",
        "WarmUpLR",
    }
    assert names(built, "lr_schedules", "mindspore.nn") == {"WarmUpLR", "cosine_decay_lr"}
    assert names(built, "lr_schedules", "mindspore.nn.learning_rate_schedule") == {
        "LearningRateSchedule",
        "WarmUpLR",
    }


def test_exports(built: dict):
    assert names(built, "exports", "mindspore") == {
        "Model",
        "ParallelMode",
        "Tensor",
        "set_context",
        "set_seed",
    }
    assert names(built, "exports", "mindspore.communication") == {"get_group_size", "get_rank", "init"}
    assert names(built, "exports", "mindspore.nn") == {"DistributedGradReducer"}


def test_releases_share_what_is_equal(tmp_path: Path):
    newer = {
        "mindspore/dataset/engine/samplers.py": """
            class BuiltinSampler:
                def __init__(self, num_samples=None): pass
            class DistributedSampler(BuiltinSampler):
                def __init__(self, num_shards, shard_id, shuffle=True, offset=-1): pass
        """,
        "mindspore/nn/dynamic_lr.py": "def warmup_lr(learning_rate): pass\n",
    }
    # given newest first, and 2.9 must come before 2.10
    wheels = [Wheel(make_wheel(tmp_path, "2.10.0", newer)), Wheel(make_wheel(tmp_path, "2.9.0"))]
    built = build(wheels)
    assert [wheel["release"] for wheel in built["wheels"]] == ["2.9.0", "2.10.0"]
    assert built["samplers"]["BuiltinSampler"] == [{"params": ["num_samples=None"]}]
    assert built["samplers"]["DistributedSampler"] == [
        {"releases": ["2.9.0"], "params": ["num_shards", "shard_id", "shuffle=True"]},
        {"releases": ["2.10.0"], "params": ["num_shards", "shard_id", "shuffle=True", "offset=-1"]},
    ]
    assert built["lr_schedules"]["mindspore.nn"] == [
        {"names": ["WarmUpLR"]},
        {"releases": ["2.9.0"], "names": ["cosine_decay_lr"]},
        {"releases": ["2.10.0"], "names": ["warmup_lr"]},
    ]


def test_the_command_writes_the_same_bytes_whatever_the_order(tmp_path: Path):
    old, new = make_wheel(tmp_path, "2.0.0"), make_wheel(tmp_path, "2.10.0")
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    build_catalog.main([str(old), str(new), "-o", str(first)])
    build_catalog.main([str(new), str(old), "-o", str(second)])
    assert first.read_bytes() == second.read_bytes()
    assert str(tmp_path) not in first.read_text(encoding="utf-8")


def test_names_that_cannot_be_followed_are_reported_if_they_matter(tmp_path: Path):
    changes = {"mindspore/nn/learning_rate_schedule.py": "__all__ = make_names()\n"}
    wheel = Wheel(make_wheel(tmp_path, "2.10.0", changes))
    build([wheel])
    assert "mindspore.nn.learning_rate_schedule: make_names() for __all__ not followed" in wheel.notes


@pytest.mark.parametrize(
    ("names_of_all", "expected"),
    [
        pytest.param("__all__ = ['a'] + ['b']", ["a", "b"], id="sum"),
        pytest.param("__all__ = ('a', 'b')", ["a", "b"], id="tuple"),
        pytest.param("names = ['b']\n__all__ = ['a', *names]", ["a", "b"], id="starred"),
        pytest.param("__all__ = ['a']\n__all__.append('b')", ["a", "b"], id="append"),
        pytest.param("__all__ = ['a', 'b', 'c']\n__all__.remove('c')", ["a", "b"], id="remove"),
        pytest.param("__all__ = ['b']\n__all__ = __all__ + ['a']\n__all__.sort()", ["a", "b"], id="itself"),
        pytest.param("__all__: list = ['a', 'b']", ["a", "b"], id="annotated"),
        pytest.param("a = b = _c = 1\n__all__ = [n for n in dir() if n[0] != '_']", ["a", "b"], id="dir()"),
        pytest.param("a = b = _c = 1", ["a", "b"], id="without"),
        pytest.param("a = b = c = 1\ndel c", ["a", "b"], id="deleted"),
        pytest.param(
            "try:\n    import a\nexcept ImportError:\n    a = None\nfinally:\n    b = 1", ["a", "b"], id="try"
        ),
    ],
)
def test_all(tmp_path: Path, names_of_all: str, expected: list[str]):
    module = Wheel(make_wheel(tmp_path, "2.10.0", {"mindspore/new.py": names_of_all})).module("mindspore.new")
    assert module is not None
    assert sorted(module.exported()) == expected


def test_modules_that_star_import_each_other_end(tmp_path: Path):
    changes = {
        "mindspore/first.py": "from mindspore.second import *\nclass First: pass\n",
        "mindspore/second.py": "from mindspore.first import *\nclass Second: pass\n",
    }
    module = Wheel(make_wheel(tmp_path, "2.10.0", changes)).module("mindspore.first")
    assert module is not None
    assert sorted(module.exported()) == ["First", "Second"]


def test_a_class_that_is_its_own_base_ends(tmp_path: Path):
    changes = {"mindspore/new.py": "class A(B): pass\nclass B(A): pass\n"}
    wheel = Wheel(make_wheel(tmp_path, "2.10.0", changes))
    found = wheel.lookup("mindspore.new.A")
    assert isinstance(found, build_catalog.Definition)
    assert [ancestor.node.name for ancestor in wheel.ancestry(found)] == ["A", "B"]


def test_bases_are_in_python_s_order(tmp_path: Path):
    source = "class A: pass\nclass B(A): pass\nclass C(A): pass\nclass D(B, C): pass\n"
    wheel = Wheel(make_wheel(tmp_path, "2.10.0", {"mindspore/new.py": source}))
    found = wheel.lookup("mindspore.new.D")
    assert isinstance(found, build_catalog.Definition)
    assert [ancestor.node.name for ancestor in wheel.ancestry(found)] == ["D", "B", "C", "A"]


def test_a_second_wheel_of_a_release_is_refused(tmp_path: Path):
    path = make_wheel(tmp_path, "2.10.0")
    with pytest.raises(CatalogError, match=r"a second wheel of 2\.10\.0"):
        build([Wheel(path), Wheel(path)])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "No such file", id="missing"),
        pytest.param(b"not a zip", "not a zip file", id="not a zip"),
        pytest.param({"x.py": "1"}, "is it a wheel", id="no metadata"),
        pytest.param(
            {"x-1.dist-info/METADATA": "Name: x\nVersion: 1\n"},
            r"no mindspore\.dataset\.Dataset",
            id="other wheel",
        ),
    ],
)
def test_what_is_not_a_mindspore_wheel_is_refused(tmp_path: Path, capsys, content, message: str):
    path = tmp_path / "some.whl"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in content.items():
                archive.writestr(name, text)
    output = tmp_path / "catalog.json"
    with pytest.raises(SystemExit) as stopped:
        build_catalog.main([str(path), "-o", str(output)])
    assert stopped.value.code == 2
    assert not output.exists()
    assert re.search(message, capsys.readouterr().err)


def test_rendering_fits_lines_and_keeps_values():
    value = {
        "long": [f"name_{number}" for number in range(40)],
        "short": {"a": [1, 2], "empty": [], "nothing": {}},
        "nested": [{"releases": ["2.0.0"], "params": [f"parameter_{number}=None" for number in range(12)]}],
        "text": 'ü "quoted"',
    }
    text = render(value, width=60)
    assert json.loads(text) == value
    assert text.endswith("}\n")
    assert max(map(len, text.splitlines())) <= 60
    assert render(json.loads(text), width=60) == text
