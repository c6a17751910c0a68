"""MindSpore's API as data, read from ``catalog.json``.

``build_catalog.py`` writes that file from released wheels; nothing here imports MindSpore. A program does not
say for which release it was written, so every answer is one that holds for **all** releases that have the
name: a slot, a flag or a default on which they disagree is unknown (None, False). Unknown names give None.

Names may be bare (``"MnistDataset"``) or qualified as a program can spell them
(``"mindspore.dataset.MnistDataset"``, ``"mindspore.nn.optim.Adam"``): the module must be, or lie in, the one
that exports the name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from . import wrappers

_DATASET = "mindspore.dataset"
_DATALOADER = "mindspore.dataset.dataloader"


class Parameter(NamedTuple):
    """One parameter: ``kind`` is "positional" (or by keyword), "keyword" (only), "args" or "kwargs"."""

    name: str
    kind: str
    default: str | None
    """The default as it stands in MindSpore's source, None where the parameter is required."""


class Signature(NamedTuple):
    """The parameters in some releases, ``self`` left out.

    ``classes`` is empty, but for a method that ``Dataset`` does not define this way: then it names who does.
    """

    releases: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    classes: tuple[str, ...] = ()

    @property
    def slots(self) -> tuple[str, ...]:
        """The parameters that positional arguments fill, in order."""
        return tuple(parameter.name for parameter in self.parameters if parameter.kind == "positional")

    @property
    def open_ended(self) -> bool:
        """Whether more positional arguments than ``slots`` are taken (``*args``)."""
        return any(parameter.kind == "args" for parameter in self.parameters)


@dataclass(frozen=True)
class Callee:
    """Something that is called with arguments, and its signature in each release that has it."""

    name: str
    signatures: tuple[Signature, ...]

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases that have it, oldest first."""
        found = {release for signature in self.signatures for release in signature.releases}
        return tuple(release for release in releases() if release in found)

    def parameter_at(self, index: int) -> str | None:
        """The parameter that the positional argument number ``index`` (from 0) fills.

        None where the releases that have such a slot disagree, or none has it.
        """
        found: set[str | None] = set()
        for signature in self.signatures:
            if 0 <= index < len(signature.slots):
                found.add(signature.slots[index])
            elif index >= 0 and signature.open_ended:
                found.add(None)
        return found.pop() if len(found) == 1 else None

    @property
    def positional(self) -> tuple[str, ...]:
        """The parameters in order, up to the first slot on which releases disagree."""
        names: list[str] = []
        while (name := self.parameter_at(len(names))) is not None:
            names.append(name)
        return tuple(names)

    def takes(self, parameter: str) -> bool:
        """Whether every release that has the callee has this parameter, by name."""
        return all(any(p.name == parameter for p in s.parameters) for s in self.signatures)

    def default(self, parameter: str) -> str | None:
        """The default of a parameter as MindSpore spells it, None where releases disagree or have none."""
        found = {
            next((p.default for p in signature.parameters if p.name == parameter), None)
            for signature in self.signatures
        }
        return found.pop() if len(found) == 1 else None


@dataclass(frozen=True)
class DatasetClass(Callee):
    """A class that is a ``mindspore.dataset.Dataset``; ``signatures`` are those of its constructor.

    ``public`` tells the classes that MindSpore documents from base classes and from what methods return.
    """

    public: bool

    @property
    def shards(self) -> bool:
        """Whether it takes ``num_shards`` and ``shard_id``."""
        return self.takes("num_shards") and self.takes("shard_id")

    @property
    def sampler(self) -> bool:
        """Whether it takes ``sampler``.

        The classes that do not, but shard, read files in order: each rank gets a block of the rows, where
        the others deal rows out one by one (measured with 2.10).
        """
        return self.takes("sampler")

    @property
    def equal_rows(self) -> bool:
        """Whether it takes ``shard_equal_rows``: it shards by file, and ranks may get unequal rows."""
        return self.takes("shard_equal_rows")


@dataclass(frozen=True)
class DatasetMethod(Callee):
    """A method of datasets, or a function of ``mindspore.dataset``."""

    returns: str
    """"dataset", "datasets" (a tuple of parts, as of ``split``) or "" for anything else."""

    @property
    def returns_dataset(self) -> bool:
        """Whether the result is one dataset."""
        return self.returns == "dataset"


class SamplerClass(Callee):
    """A sampler of ``mindspore.dataset``; ``signatures`` are those of its constructor."""


@cache
def _load() -> dict[str, Any]:
    text = (Path(__file__).parent / "catalog.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@cache
def releases() -> tuple[str, ...]:
    """The MindSpore releases that the catalog knows, oldest first."""
    return tuple(wheel["release"] for wheel in _load()["wheels"])


def _within(name: str, module: str) -> str | None:
    """The bare name, if ``name`` is bare or qualified with ``module`` or a module in it."""
    home, _, bare = name.rpartition(".")
    return bare if not home or home == module or home.startswith(f"{module}.") else None


def _in_dataset(name: str) -> str | None:
    # The DataLoader's package lies in mindspore.dataset and has a Dataset and samplers of its own.
    return None if name.startswith(f"{_DATALOADER}.") else _within(name, _DATASET)


def _parameter(text: str) -> Parameter:
    name, _, default = text.partition("=")
    if name.startswith("**"):
        return Parameter(name[2:], "kwargs", None)
    if name.startswith("*"):
        return Parameter(name[1:], "args", None)
    return Parameter(name, "positional", default if "=" in text else None)


def _signature(record: dict[str, Any]) -> Signature:
    parameters: list[Parameter] = []
    keyword_only = False
    for text in record["params"]:
        parameter = _parameter(text)
        if keyword_only and parameter.kind == "positional":
            parameter = Parameter(parameter.name, "keyword", parameter.default)
        keyword_only = keyword_only or parameter.kind == "args"
        if parameter.name:  # a bare `*` only separates
            parameters.append(parameter)
    return Signature(_releases(record), tuple(parameters), tuple(record.get("classes", ())))


def _releases(record: dict[str, Any]) -> tuple[str, ...]:
    """The releases a record speaks for; one that names none speaks for all."""
    return tuple(record["releases"]) if "releases" in record else releases()


def _records(section: str, name: str | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _load()[section].get(name, [])
    return found


def _signatures(records: Iterable[dict[str, Any]]) -> tuple[Signature, ...]:
    return tuple(_signature(record) for record in records)


@cache
def _named(section: str, module: str) -> dict[str, tuple[str, ...]]:
    """The names a module has in a section, with the releases that have them."""
    return {name: _releases(group) for group in _load()[section].get(module, []) for name in group["names"]}


def _is_named(section: str, name: str) -> bool:
    return any(_within(name, module) in _named(section, module) for module in _load()[section])


def _names(section: str) -> frozenset[str]:
    return frozenset(name for module in _load()[section] for name in _named(section, module))


@cache
def dataset(name: str) -> DatasetClass | None:
    """The dataset class of this name, or the function of another library that builds datasets."""
    if name in wrappers.DATASETS:
        return DatasetClass(name, _signatures(wrappers.DATASETS[name]), public=True)
    bare = _in_dataset(name)
    records = _records("datasets", bare)
    if bare is None or not records:
        return None
    return DatasetClass(bare, _signatures(records), bare in _named("public", _DATASET))


@cache
def dataset_names() -> frozenset[str]:
    """All dataset classes, bare; base classes and what methods return (``BatchDataset``) included."""
    return frozenset(_load()["datasets"])


@cache
def method(name: str) -> DatasetMethod | None:
    """The method ``name`` of datasets, whichever dataset class has it."""
    return _method("methods", name)


@cache
def function(name: str) -> DatasetMethod | None:
    """The function ``name`` of ``mindspore.dataset`` (``zip``, ``deserialize``)."""
    return _method("functions", _in_dataset(name))


def _method(section: str, name: str | None) -> DatasetMethod | None:
    records = _records(section, name)
    if name is None or not records:
        return None
    returned = {record.get("returns", "") for record in records}
    return DatasetMethod(name, _signatures(records), returned.pop() if len(returned) == 1 else "")


@cache
def method_names() -> frozenset[str]:
    """All methods of datasets."""
    return frozenset(_load()["methods"])


@cache
def sampler(name: str) -> SamplerClass | None:
    """The sampler class of this name in ``mindspore.dataset``."""
    bare = _in_dataset(name)
    records = _records("samplers", bare)
    return SamplerClass(bare, _signatures(records)) if bare is not None and records else None


@cache
def sampler_names() -> frozenset[str]:
    """All sampler classes of ``mindspore.dataset``, bare; base classes included."""
    return frozenset(_load()["samplers"])


@cache
def dataloader(name: str) -> Callee | None:
    """The class of this name in ``mindspore.dataset.dataloader``, which came with 2.8."""
    bare = _within(name, _DATALOADER)
    records = _records("dataloader", bare)
    return Callee(bare, _signatures(records)) if bare is not None and records else None


def is_optimizer(name: str) -> bool:
    """Whether calling ``name`` builds an optimizer (of ``nn``, ``experimental.optim`` or ``mint.optim``)."""
    return _is_named("optimizers", name)


def is_train_cell(name: str) -> bool:
    """Whether ``name`` is a cell that takes gradients itself: ``TrainOneStepCell`` and its kind."""
    return _is_named("train_cells", name)


def is_cell(name: str) -> bool:
    """Whether calling ``name`` builds a Cell (of ``mindspore.nn`` or ``mindspore.mint.nn``)."""
    return _is_named("cells", name)


@cache
def lr_schedules() -> frozenset[str]:
    """Learning-rate schedules, bare: the functions and classes of ``nn``, and the optimizers' schedulers."""
    return _names("lr_schedules")


def is_lr_schedule(name: str) -> bool:
    """Whether ``name`` is a learning-rate schedule."""
    return _is_named("lr_schedules", name)


def exported_in(name: str) -> tuple[str, ...]:
    """The releases that have a qualified name of the builder's ``EXPORTS`` (``mindspore.set_device``)."""
    module, _, bare = name.rpartition(".")
    return _named("exports", module).get(bare, ())
