"""Made-up data for programs whose own is not here (``--fake-data``): which files a program wants, and making them.

A program's text tells the paths that are literals; the others are known when it runs, where ``watch/fake_data_files.py``
makes what a constructor asks for. That file does the writing here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from ..mindspore import catalog, names
from ..reading.expressions import literal
from ..reading.origin import Edge
from ..reading.program import Program
from ..reading.roles import Site, argument
from ..reading.script import Script
from .watch.fake_data_files import NEEDS_NOTHING, PATHS, CannotFake, write

_PATH_PARAMETERS = ("dataset_dir", "dataset_files", "dataset_file")


@dataclass(frozen=True)
class Wanted:
    """Data that a program reads.

    Attributes:
        kind: the class of ``mindspore.dataset`` that reads it.
        path: where, as the program says it; absolute by the time it is made.
        columns: for formats that do not fix them: "label", "label:int32", "points:float32:3x4".
        usage: the part of the data set, where one is named; all parts are made in any case.
    """

    kind: str
    path: str
    columns: tuple[str, ...] = ()
    usage: str = ""


@dataclass(frozen=True)
class Made:
    """Made-up data.

    Attributes:
        wanted: what it was made for.
        files: every file that was put there; none where the same data had been made up before.
        rows: how many rows a program that trains finds.
    """

    wanted: Wanted
    files: tuple[str, ...]
    rows: int


def make(wanted: Sequence[Wanted], *, rows: int, seed: int = 0, scratch: str = "") -> list[Made]:
    """Make data, each folder or file once.

    Args:
        wanted: what to make.
        rows: how many rows, where the format leaves that open (CIFAR files have 10,000).
        seed: of the made-up values.
        scratch: a folder below which files may be made beside what is there; elsewhere folders must be empty.

    Raises:
        CannotFake: what cannot be made up, or something is there already; nothing is ever written over. What stands
            before it in ``wanted`` was made.
    """
    unique = {(one.kind, one.path): one for one in reversed(wanted)}
    made = []
    for one in sorted(unique.values(), key=wanted.index):
        arguments = {"columns": one.columns, "usage": one.usage}
        files, count = write(one.kind, one.path, arguments, rows, seed, scratch)
        made.append(Made(one, tuple(files), count))
    return made


def wanted_by(program: Program) -> tuple[list[Wanted], list[str]]:
    """Return the data a program reads from paths that its text tells, and the constructors whose path it does not.

    The latter as "MnistDataset at train.py:9".
    """
    found: dict[Wanted, None] = {}
    unknown: dict[str, None] = {}
    for site in program.roles.sites:
        parameter = _path_parameter(site.name)
        if parameter is None:
            continue
        for calls in {use.calls: None for use in site.uses} or {(): None}:
            path = _constant(program, site, parameter, calls)
            if not isinstance(path, str):
                unknown[f"{site.name} at {site.script.where(site.call)}"] = None
                continue
            usage = _constant(program, site, "usage", calls)
            columns = _columns(program, site, calls)
            found[Wanted(site.name, path, columns, usage if isinstance(usage, str) else "")] = None
    return list(found), list(unknown)


def _path_parameter(kind: str) -> str | None:
    """Return the parameter that says where a class reads, if it reads files."""
    signature = catalog.dataset(kind)
    if kind in NEEDS_NOTHING or signature is None:
        return None
    return PATHS.get(kind) or next((name for name in _PATH_PARAMETERS if signature.takes(name)), None)


def _passed(site: Site, parameter: str) -> cst.BaseExpression | None:
    signature = catalog.dataset(site.name)
    slots = signature.positional if signature is not None else ()
    return argument(site.call, slots.index(parameter) if parameter in slots else None, parameter)


def _constant(program: Program, site: Site, parameter: str, calls: tuple[Edge, ...]) -> object:
    return program.flow.constant(site.script, _passed(site, parameter), calls)


def _columns(program: Program, site: Site, calls: tuple[Edge, ...]) -> tuple[str, ...]:
    if site.name == "MindDataset":
        return record_columns(program)
    if site.name != "CSVDataset":
        return ()
    names_, defaults = (_list(program, site, parameter, calls) for parameter in ("column_names", "column_defaults"))
    if not all(isinstance(name, str) and ":" not in name for name in names_):
        return ()
    floats = {index for index, value in enumerate(defaults) if isinstance(value, float)}
    return tuple(f"{name}:float32" if index in floats else str(name) for index, name in enumerate(names_))


def _list(program: Program, site: Site, parameter: str, calls: tuple[Edge, ...]) -> list[object]:
    """Return the items of an argument that is a list written out, with ``...`` for those that are no literals."""
    passed = _passed(site, parameter)
    origins = program.flow.origins(site.script, passed, calls) if passed is not None else []
    if len(origins) != 1 or not isinstance(origins[0].node, (cst.List, cst.Tuple)):
        return []
    return [literal(element.value) for element in origins[0].node.elements]


def record_columns(program: Program) -> tuple[str, ...]:
    """Return the columns that the program's own ``FileWriter.add_schema`` gives to MindRecord files.

    None where it has no such call with a dictionary written out, or several that differ.
    """
    found = set()
    for script in program.scripts:
        for call in script.bindings.calls:
            func = call.func
            if not isinstance(func, cst.Attribute) or func.attr.value != "add_schema":
                continue
            if any(origin.qualified == names.FILE_WRITER for origin in program.flow.origins(script, func.value)):
                found.add(_schema(program, script, call))
    return found.pop() if len(found) == 1 else ()


def _schema(program: Program, script: Script, call: cst.Call) -> tuple[str, ...]:
    content = argument(call, 0, "content")
    origins = program.flow.origins(script, content) if content is not None else []
    if len(origins) != 1 or not isinstance(origins[0].node, cst.Dict):
        return ()
    columns = []
    for element in origins[0].node.elements:
        if not isinstance(element, cst.DictElement) or not isinstance(element.value, cst.Dict):
            return ()
        entries = {
            literal(entry.key): entry.value for entry in element.value.elements if isinstance(entry, cst.DictElement)
        }
        name, kind = literal(element.key), literal(entries.get("type"))
        shape = entries.get("shape")
        sizes = [literal(size.value) for size in shape.elements] if isinstance(shape, (cst.List, cst.Tuple)) else []
        if not isinstance(name, str) or not isinstance(kind, str) or ... in sizes or ":" in name:
            return ()
        columns.append(":".join([name, kind, *(["x".join(map(str, sizes))] if sizes else [])]))
    return tuple(columns)


__all__ = ["CannotFake", "Made", "Wanted", "make", "record_columns", "wanted_by"]
