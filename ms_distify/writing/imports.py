"""Where new imports and functions go: beside the user's own imports, below docstring and ``__future__``."""

from __future__ import annotations

import libcst as cst

from ..model import Define, Need
from ..reading.bindings import dotted
from ..reading.script import Script
from .splice import Splice


def import_splices(script: Script, needs: list[Need], first_use: int | None) -> list[Splice]:
    """Return the insertions that import what inserted code needs.

    The standard library goes above the first import, MindSpore below the last import of MindSpore that comes before
    the first edit, so that what the script does between its imports keeps its order.

    Args:
        script: the file.
        needs: the imports.
        first_use: the offset of the first edit, which the imports must precede.
    """
    if not needs:
        return []
    limit = first_use if first_use is not None else len(script.source.text)
    library = [need for need in needs if need.module.partition(".")[0] == "mindspore"]
    standard = [need for need in needs if need not in library]
    splices = []
    if standard:
        splices.append(_place(script, _lines(standard), limit, first=True))
    if library:
        splices.append(_place(script, _lines(library), limit, first=False))
    return splices


def definition_splices(script: Script, defines: list[Define], first_use: int | None) -> list[Splice]:
    """Return the insertion that defines functions below the imports that come before the first edit.

    Args:
        script: the file.
        defines: the functions; the same one may be there more than once.
        first_use: the offset of the first edit, which the functions must precede.
    """
    if not defines:
        return []
    tree, source = script.tree, script.source
    limit = first_use if first_use is not None else len(source.text)
    head: list[cst.CSTNode] = []
    for statement in tree.module.body:
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)) or tree.span(statement)[1] > limit:
            break
        head.append(statement)
    imports = [statement for statement in head if _is_import(statement)]
    after = imports[-1] if imports else _docstring(tree.module)
    newline = source.newline
    texts = [newline.join(define.lines) + newline for define in {define.name: define for define in defines}.values()]
    body = (newline * 2).join(texts)
    if after is None:
        start = source.line_start(tree.start(tree.module.body[0]))
        return [Splice(start, start, body + newline * 2, order=-2)]
    end = source.line_end(max(tree.start(after), tree.span(after)[1] - 1))
    blank = 0
    while blank < 2 and end + blank * len(newline) < len(source.text):
        at = end + blank * len(newline)
        if not source.text.startswith(newline, at):
            break
        blank += 1
    return [Splice(end, end, newline * 2 + body + newline * (2 - blank), order=-2)]


def _lines(needs: list[Need]) -> list[str]:
    lines = [
        f"import {need.module}" + (f" as {need.local}" if need.local != need.module else "")
        for need in sorted(needs, key=lambda need: need.module)
        if not need.name
    ]
    modules = sorted({need.module for need in needs if need.name})
    for module in modules:
        names = sorted(
            need.name + (f" as {need.local}" if need.local != need.name else "")
            for need in needs
            if need.module == module and need.name
        )
        lines.append(f"from {module} import {', '.join(names)}")
    return lines


def _place(script: Script, lines: list[str], limit: int, *, first: bool) -> Splice:
    tree, source = script.tree, script.source
    text = "".join(line + source.newline for line in lines)
    imports = [s for s in tree.module.body if _is_import(s) and tree.span(s)[1] <= limit]
    future = [s for s in imports if _is_future(s)]
    plain = [s for s in imports if not _is_future(s)]
    if plain and first:
        start = source.line_start(tree.start(plain[0]))
        return Splice(start, start, text, order=-3)
    if plain:
        ours = [s for s in plain if _mentions_mindspore(s)] or plain
        end = source.line_end(tree.span(ours[-1])[1] - 1)
        return Splice(end, end, text, order=-3)
    after = future[-1] if future else _docstring(tree.module)
    if after is not None:
        end = source.line_end(max(tree.start(after), tree.span(after)[1] - 1))
        return Splice(end, end, text, order=-3)
    body = tree.module.body
    start = source.line_start(tree.start(body[0])) if body else 0
    return Splice(start, start, text, order=-3)


def _is_import(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and all(
        isinstance(part, (cst.Import, cst.ImportFrom)) for part in statement.body
    )


def _is_future(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and any(
        isinstance(part, cst.ImportFrom) and dotted(part.module) == "__future__" for part in statement.body
    )


def _mentions_mindspore(statement: cst.CSTNode) -> bool:
    assert isinstance(statement, cst.SimpleStatementLine)
    for part in statement.body:
        if isinstance(part, cst.ImportFrom) and not part.relative:
            if (dotted(part.module) or "").partition(".")[0] == "mindspore":
                return True
        elif isinstance(part, cst.Import):
            if any((dotted(alias.name) or "").partition(".")[0] == "mindspore" for alias in part.names):
                return True
    return False


def _docstring(module: cst.Module) -> cst.CSTNode | None:
    if module.body and isinstance(module.body[0], cst.SimpleStatementLine):
        first = module.body[0].body[0]
        if isinstance(first, cst.Expr) and isinstance(first.value, (cst.SimpleString, cst.ConcatenatedString)):
            return module.body[0]
    return None
