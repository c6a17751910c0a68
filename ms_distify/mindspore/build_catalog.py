"""Rebuild ``catalog.json`` from released MindSpore wheels.

Run as::

    python -m ms_distify.mindspore.build_catalog WHEEL [WHEEL ...] -o catalog.json

The wheels are read as zip files and their Python sources are parsed, never imported: the wheels for
Ascend cannot be imported without the accelerator's libraries, and no environment holds six releases
at once. What a name means (``mindspore.nn.Dense``, the base of a class, the ``x`` in ``x.__all__``)
is found by following imports, star imports and ``__all__`` the way Python would.

What is written is what the sources say, nothing derived from it: a class is its ``__init__`` parameters
with their defaults, and "takes ``num_shards``" is left to the reader (``catalog.py``). Only what holds
for part of the releases carries a ``releases`` list, so a new release changes the lines that it changed.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from .wheels import FUNCTIONS, AnyFunction, CatalogError, Definition, Wheel

DATASET = "mindspore.dataset"
DATALOADER = "mindspore.dataset.dataloader"

# For each kind of class: the roots it derives from, and the modules whose names can be of that kind.
OPTIMIZER_ROOTS = ("mindspore.nn.Optimizer", "mindspore.experimental.optim.Optimizer")
OPTIMIZER_MODULES = ("mindspore.nn", "mindspore.experimental.optim", "mindspore.mint.optim")
TRAIN_CELL_ROOTS = ("mindspore.nn.TrainOneStepCell", "mindspore.nn.ForwardValueAndGrad")
TRAIN_CELL_MODULES = ("mindspore.nn", "mindspore.boost")
CELL_ROOTS = ("mindspore.nn.Cell",)
CELL_MODULES = ("mindspore.nn", "mindspore.nn.learning_rate_schedule", "mindspore.mint.nn")
LR_FUNCTION_HOME = "mindspore.nn.dynamic_lr"
LR_CLASS_ROOTS = (
    "mindspore.nn.learning_rate_schedule.LearningRateSchedule",
    "mindspore.experimental.optim.lr_scheduler.LRScheduler",
    "mindspore.experimental.optim.lr_scheduler.SequentialLR",
    "mindspore.experimental.optim.lr_scheduler.ReduceLROnPlateau",
)
LR_MODULES = (
    "mindspore.nn",
    "mindspore.nn.learning_rate_schedule",  # the base class that users derive from is exported by it alone
    "mindspore.experimental.optim.lr_scheduler",
)

# Names whose presence differs between releases or is relied on by what ms-distify writes.
EXPORTS: Mapping[str, tuple[str, ...]] = {
    "mindspore": (
        "Model",
        "ParallelMode",
        "Parameter",
        "Tensor",
        "reset_auto_parallel_context",
        "set_auto_parallel_context",
        "set_context",
        "set_device",
        "set_seed",
    ),
    "mindspore.communication": ("get_group_size", "get_rank", "init"),
    "mindspore.nn": ("DistributedGradReducer",),
}

# Dataset methods whose result cannot be read off their return statements.
RETURNS_BY_HAND: Mapping[str, tuple[str, str]] = {
    "apply": ("dataset", "returns what the user's function returned, after checking that it is a Dataset"),
    "flat_map": ("dataset", "adds up what the user's function returned, after checking that it is a Dataset"),
    "split": ("datasets", "returns a tuple of parts of the dataset, collected in a list"),
}
# The same for functions of the module.
FUNCTION_RETURNS_BY_HAND: Mapping[str, tuple[str, str]] = {
    "deserialize": ("dataset", "a variable holds the DeserializedDataset, or None without arguments"),
}


def _methods(definition: Definition) -> dict[str, AnyFunction]:
    """The methods that a class defines itself, the last of each name."""
    body = definition.node.body
    return {statement.name: statement for statement in body if isinstance(statement, FUNCTIONS)}


def _decorators(function: AnyFunction) -> set[str]:
    return {ast.unparse(decorator).rpartition(".")[2] for decorator in function.decorator_list}


def _parameters(function: AnyFunction, bound: bool) -> list[str]:
    """Parameters as ``name``, ``name=default``, ``*args``, ``*`` and ``**kwargs``; without self if bound.

    MindSpore's validating decorators keep the signature (``functools.wraps``): the source is what is called.
    """
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults.extend(arguments.defaults)
    texts = [_parameter(argument, default) for argument, default in zip(positional, defaults)]
    if bound:
        texts = texts[1:]
    if arguments.vararg:
        texts.append(f"*{arguments.vararg.arg}")
    elif arguments.kwonlyargs:
        texts.append("*")
    texts.extend(_parameter(a, default) for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults))
    if arguments.kwarg:
        texts.append(f"**{arguments.kwarg.arg}")
    return texts


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    return argument.arg if default is None else f"{argument.arg}={ast.unparse(default)}"


def _init_parameters(wheel: Wheel, definition: Definition) -> list[str]:
    for ancestor in wheel.ancestry(definition):
        init = _methods(ancestor).get("__init__")
        if init is not None:
            return _parameters(init, bound=True)
        for base in ancestor.node.bases if isinstance(ancestor.node, ast.ClassDef) else ():
            if ancestor.module.resolve(base) is None and not ancestor.module.is_abstract(base):
                wheel.note(f"{definition.identity[1]}: base {ast.unparse(base)} not followed, parameters unknown")
                return ["*args", "**kwargs"]
    return []


def _results(function: AnyFunction) -> list[ast.expr | None]:
    """What a function returns, its inner functions aside; None for a bare return."""
    results: list[ast.expr | None] = []
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Return):
            results.append(node.value)
        elif not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))
    return results


def _returns(wheel: Wheel, home: Definition, function: AnyFunction, roots: Sequence[str]) -> bool:
    """Whether a function or method returns an instance of a root class whenever it returns."""
    results = _results(function)
    return bool(results) and all(
        result is not None and _is_instance(wheel, home, function, result, roots) for result in results
    )


def _is_instance(wheel: Wheel, home: Definition, function: AnyFunction, value: ast.expr, roots: Sequence[str]) -> bool:
    if isinstance(value, ast.Name) and isinstance(home.node, ast.ClassDef):
        return value.id == "self"
    if not isinstance(value, ast.Call):
        return False
    called = value.func
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "self":
        for ancestor in wheel.ancestry(home):
            method = _methods(ancestor).get(called.attr)
            if method is not None:
                return method is not function and _returns(wheel, ancestor, method, roots)
    if ast.unparse(called) in ("copy.copy", "copy.deepcopy") and value.args:
        return _is_instance(wheel, home, function, value.args[0], roots)
    definition = home.module.resolve(called)
    return isinstance(definition, Definition) and wheel.is_subclass(definition, roots)


# One release's answers: a table maps a name to its records, each a JSON object without `releases`.
_Record = dict[str, object]
_Table = dict[str, list[_Record]]


def _classes(wheel: Wheel, module: str, root: str) -> dict[str, Definition]:
    return {name: found for name, found in wheel.definitions(module) if wheel.is_subclass(found, [root])}


def _class_table(wheel: Wheel, classes: Mapping[str, Definition]) -> _Table:
    return {name: [{"params": _init_parameters(wheel, found)}] for name, found in classes.items()}


def _method_table(wheel: Wheel, classes: Mapping[str, Definition], root: Definition) -> _Table:
    """Methods of the dataset classes.

    What ``Dataset`` itself defines speaks for all of them. A class that defines a method otherwise, or one
    that ``Dataset`` does not have, gets a record of its own that names the class.
    """
    roots = [f"{DATASET}.Dataset"]
    table: _Table = {}
    ordered = [("Dataset", root)]
    ordered += [(name, found) for name, found in sorted(classes.items()) if found.identity != root.identity]
    for class_name, definition in ordered:
        for name, method in _methods(definition).items():
            decorators = _decorators(method)
            if name.startswith("_") or decorators & {"property", "setter"}:
                continue
            if _returns(wheel, definition, method, roots):
                returns = "dataset"
            else:
                returns = RETURNS_BY_HAND.get(name, ("", ""))[0]
            record: _Record = {"params": _parameters(method, bound="staticmethod" not in decorators)}
            if returns:
                record["returns"] = returns
            records = table.setdefault(name, [])
            same = next((r for r in records if all(r.get(k) == record.get(k) for k in ("params", "returns"))), None)
            if same is None:
                records.append(record if class_name == "Dataset" else {"classes": [class_name], **record})
            elif isinstance(same.get("classes"), list):
                same["classes"] = [*_strings(same["classes"]), class_name]
    return table


def _function_table(wheel: Wheel, listed: set[str]) -> _Table:
    table: _Table = {}
    for name, found in wheel.definitions(DATASET):
        if name not in listed or not isinstance(found.node, FUNCTIONS):
            continue
        record: _Record = {"params": _parameters(found.node, bound=False)}
        if _returns(wheel, found, found.node, [f"{DATASET}.Dataset"]):
            record["returns"] = "dataset"
        elif name in FUNCTION_RETURNS_BY_HAND:
            record["returns"] = FUNCTION_RETURNS_BY_HAND[name][0]
        table[name] = [record]
    return table


def _dataloader_table(wheel: Wheel) -> _Table:
    found = {name: d for name, d in wheel.definitions(DATALOADER) if isinstance(d.node, ast.ClassDef)}
    return _class_table(wheel, found)


def _names(wheel: Wheel, modules: Sequence[str], roots: Sequence[str], factories: bool = False) -> dict[str, set[str]]:
    """For each module, the names in it that are a root class or derive from one.

    With ``factories``, also the functions that return one: ``nn.thor(...)`` builds an optimizer.
    """
    table: dict[str, set[str]] = {}
    for module in modules:
        table[module] = {
            name
            for name, found in wheel.definitions(module)
            if (
                wheel.is_subclass(found, roots)
                if isinstance(found.node, ast.ClassDef)
                else factories and _returns(wheel, found, found.node, roots)
            )
        }
    return table


def _lr_schedules(wheel: Wheel) -> dict[str, set[str]]:
    table = _names(wheel, LR_MODULES, LR_CLASS_ROOTS)
    for name, found in wheel.definitions("mindspore.nn"):
        if isinstance(found.node, FUNCTIONS) and found.module.name == LR_FUNCTION_HOME:
            table["mindspore.nn"].add(name)
    return table


def _exports(wheel: Wheel) -> dict[str, set[str]]:
    table: dict[str, set[str]] = {}
    for module, wanted in EXPORTS.items():
        home = wheel.module(module)
        table[module] = {name for name in wanted if home and name in home.bindings}
    return table


@dataclass(frozen=True)
class _Release:
    """Everything the catalog says about one release."""

    tables: Mapping[str, _Table]
    names: Mapping[str, Mapping[str, set[str]]]


def read_release(wheel: Wheel) -> _Release:
    """Read one release."""
    root = wheel.lookup(f"{DATASET}.Dataset")
    home = wheel.module(DATASET)
    if not isinstance(root, Definition) or home is None:
        raise CatalogError(f"{wheel.path}: no {DATASET}.Dataset in it")
    datasets = _classes(wheel, DATASET, f"{DATASET}.Dataset")
    listed = set(home.exported())
    sampler_root = f"{DATASET}.BuiltinSampler"
    tables = {
        "datasets": _class_table(wheel, datasets),
        "methods": _method_table(wheel, datasets, root),
        "functions": _function_table(wheel, listed),
        "samplers": _class_table(wheel, _classes(wheel, DATASET, sampler_root)),
        "dataloader": _dataloader_table(wheel),
    }
    names = {
        # What MindSpore documents; the rest of "datasets" and "samplers" are bases and what methods return.
        "public": {DATASET: listed & (set(tables["datasets"]) | set(tables["samplers"]))},
        "optimizers": _names(wheel, OPTIMIZER_MODULES, OPTIMIZER_ROOTS, factories=True),
        "train_cells": _names(wheel, TRAIN_CELL_MODULES, TRAIN_CELL_ROOTS),
        "cells": _names(wheel, CELL_MODULES, CELL_ROOTS),
        "lr_schedules": _lr_schedules(wheel),
        "exports": _exports(wheel),
    }
    return _Release(tables, names)


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _merge_tables(per_release: Mapping[str, _Table]) -> dict[str, list[_Record]]:
    """Equal records of several releases become one; `releases` is left out where it would name them all."""
    everywhere = list(per_release)
    merged: dict[str, list[_Record]] = {}
    for name in sorted({name for table in per_release.values() for name in table}):
        holders: list[tuple[_Record, list[str]]] = []
        for release, table in per_release.items():
            for record in table.get(name, []):
                same = next((releases for other, releases in holders if other == record), None)
                if same is None:
                    holders.append((record, [release]))
                else:
                    same.append(release)
        merged[name] = [
            record if releases == everywhere else {"releases": releases, **record} for record, releases in holders
        ]
    return merged


def _merge_names(per_release: Mapping[str, Mapping[str, set[str]]]) -> dict[str, list[_Record]]:
    """For each module its names, grouped by the releases that have them."""
    everywhere = list(per_release)
    merged: dict[str, list[_Record]] = {}
    for module in sorted({module for table in per_release.values() for module in table}):
        groups: dict[tuple[str, ...], list[str]] = {}
        for name in sorted({name for table in per_release.values() for name in table.get(module, ())}):
            having = tuple(release for release, table in per_release.items() if name in table.get(module, ()))
            groups.setdefault(having, []).append(name)
        merged[module] = [
            {"names": names} if list(having) == everywhere else {"releases": list(having), "names": names}
            for having, names in sorted(groups.items(), key=lambda group: (-len(group[0]), group[1]))
        ]
    return merged


def _release_order(release: str) -> tuple[object, ...]:
    """2.10 comes after 2.9; what is not a number (rc1) sorts within."""
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|[a-z]+", release))


def build(wheels: Iterable[Wheel]) -> dict[str, object]:
    """The catalog of some releases, ready to be rendered."""
    ordered = sorted(wheels, key=lambda wheel: _release_order(wheel.release))
    read: dict[str, _Release] = {}
    for wheel in ordered:
        if wheel.release in read:
            raise CatalogError(f"{wheel.path}: a second wheel of {wheel.release}")
        read[wheel.release] = read_release(wheel)
    if not read:
        raise CatalogError("no wheels")
    catalog: dict[str, object] = {
        "about": "Written by ms_distify/mindspore/build_catalog.py from these wheels; do not edit.",
        "wheels": [
            {"release": wheel.release, "distribution": wheel.distribution, "file": wheel.path.name} for wheel in ordered
        ],
    }
    first = next(iter(read.values()))
    for section in first.tables:
        catalog[section] = _merge_tables({release: facts.tables[section] for release, facts in read.items()})
    for section in first.names:
        catalog[section] = _merge_names({release: facts.names[section] for release, facts in read.items()})
    return catalog


def render(value: object, width: int = 110) -> str:
    """JSON with every value that fits on a line on one line, so that a diff shows what changed."""
    return _render(value, "", width) + "\n"


def _render(value: object, indent: str, width: int, before: int = 0) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    if len(indent) + before + len(flat) < width or not isinstance(value, (dict, list)) or not value:
        return flat
    inner = indent + " "
    if isinstance(value, dict):
        keys = [json.dumps(key, ensure_ascii=False) + ": " for key in value]
        lines = [key + _render(item, inner, width, len(key) + 1) for key, item in zip(keys, value.values())]
        return "{\n" + ",\n".join(inner + line for line in lines) + f"\n{indent}}}"
    if all(isinstance(item, str) for item in value):
        return "[\n" + "\n".join(_fill(value, inner, width)) + f"\n{indent}]"
    return "[\n" + ",\n".join(inner + _render(item, inner, width, 1) for item in value) + f"\n{indent}]"


def _fill(items: Sequence[str], indent: str, width: int) -> Iterator[str]:
    """Strings, as many to a line as fit."""
    line = indent
    for number, item in enumerate(items):
        text = json.dumps(item, ensure_ascii=False) + ("," if number + 1 < len(items) else "")
        if line != indent and len(line) + 1 + len(text) > width:
            yield line
            line = indent
        line += text if line == indent else f" {text}"
    yield line


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"build_catalog: {message}\n")
    raise SystemExit(2)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line: wheels in, catalog out; what could not be followed goes to standard error."""
    parser = argparse.ArgumentParser(
        prog="python -m ms_distify.mindspore.build_catalog",
        description="Write the MindSpore catalog from released wheels.",
    )
    parser.add_argument("wheels", metavar="WHEEL", nargs="+", type=Path)
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, required=True)
    options = parser.parse_args(arguments)
    try:
        wheels = [Wheel(path) for path in options.wheels]
        text = render(build(wheels))
    except CatalogError as error:
        _fail(str(error))
    for wheel in wheels:
        for note in wheel.notes:
            sys.stderr.write(f"{wheel.release}: {note}\n")
    options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
