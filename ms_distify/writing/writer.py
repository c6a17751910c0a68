"""Turns edits into the new text of each file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from ..model import AddKeywords, AddParameters, Define, Edit, Guard, Insert, Move, Replace, Wrap
from ..reading.script import Script
from ..reading.source import LINE_END
from .imports import definition_splices, import_splices
from .items import append_items
from .splice import Splice, apply

# The order of lines inserted after a statement, at the offset where the next one begins.
_AFTER = -10


def write(edits: Iterable[Edit]) -> dict[Script, str]:
    """Return the new text of every file that edits touch.

    Edits that meet in one place are merged: keywords of one call, lines inserted at one statement, one import a name.
    """
    by_script: dict[Script, list[Edit]] = {}
    for edit in edits:
        by_script.setdefault(edit.script, []).append(edit)
    return {script: _File(script, some).text() for script, some in by_script.items()}


@dataclass
class _File:
    script: Script
    edits: list[Edit]

    def text(self) -> str:
        splices: list[Splice] = []
        splices += self._keywords()
        splices += self._parameters()
        splices += self._inserts()
        for edit in dict.fromkeys(e for e in self.edits if isinstance(e, Replace)):
            start, end = self.script.tree.span(edit.node)
            splices.append(Splice(start, end, edit.text))
        for wrap in dict.fromkeys(e for e in self.edits if isinstance(e, Wrap)):
            start, end = self.script.tree.span(wrap.node)
            splices += [Splice(start, start, wrap.before), Splice(end, end, wrap.behind)]
        for guard in self._unique_guards():
            splices += self._guard(guard)
        needs = list(dict.fromkeys(need for edit in self.edits for need in edit.needs))
        first = min((splice.start for splice in splices), default=None)
        splices += import_splices(self.script, needs, first)
        splices += definition_splices(self.script, [e for e in self.edits if isinstance(e, Define)], first)
        moves = [edit for edit in self.edits if isinstance(edit, Move)]
        for move in moves:
            splices = self._move(move, splices)
        return apply(self.script.source.text, splices)

    # -- arguments and parameters --------------------------------------------------------------------------------

    def _keywords(self) -> list[Splice]:
        merged: dict[cst.Call, dict[str, str]] = {}
        for edit in self.edits:
            if isinstance(edit, AddKeywords):
                merged.setdefault(edit.call, {}).update(edit.keywords)
        splices = []
        for call, keywords in merged.items():
            items = [f"{name}={value}" for name, value in keywords.items()]
            splices += self._append(self._opening(call), items)
        return splices

    def _opening(self, call: cst.Call) -> int:
        """Return the offset of a call's opening bracket."""
        end = self.script.tree.span(call.func)[1]
        end += sum(len(self.script.tree.module.code_for_node(paren)) for paren in call.func.rpar)
        return self.script.source.text.index("(", end)

    def _parameters(self) -> list[Splice]:
        merged: dict[cst.FunctionDef, list[str]] = {}
        for edit in self.edits:
            if isinstance(edit, AddParameters):
                names = merged.setdefault(edit.function, [])
                names.extend(name for name in edit.names if name not in names)
        splices = []
        for function, names in merged.items():
            end = self.script.tree.span(function.name)[1]
            type_parameters = getattr(function, "type_parameters", None)
            if type_parameters is not None:
                end = self.script.tree.span(type_parameters)[1]
            opening = self.script.source.text.index("(", end)
            splices += self._append(opening, [f"{name}=None" for name in names], parameters=True)
        return splices

    def _append(self, opening: int, items: list[str], *, parameters: bool = False) -> list[Splice]:
        insertions = append_items(self.script.source, opening, items, before_double_star=parameters)
        return [Splice(offset, offset, text) for offset, text in insertions]

    # -- statements ------------------------------------------------------------------------------------------------

    def _inserts(self) -> list[Splice]:
        groups: dict[tuple[cst.CSTNode, str], list[Insert]] = {}
        for edit in dict.fromkeys(self.edits):
            if isinstance(edit, Insert):
                groups.setdefault((edit.statement, edit.where), []).append(edit)
        return [self._insert(statement, where, some) for (statement, where), some in groups.items()]

    def _insert(self, statement: cst.CSTNode, where: str, inserts: list[Insert]) -> Splice:
        source = self.script.source
        start, end = self.script.tree.span(statement)
        indent = source.indent(start)
        unit = self.script.tree.module.default_indent
        lines: list[str] = []
        condition = ""
        for insert in sorted(inserts, key=lambda edit: edit.order):
            if insert.under and insert.under != condition:
                lines.append(f"{indent}if {insert.under}")
            condition = insert.under
            inner = indent + unit if insert.under else indent
            lines += [inner + line if line else line for line in insert.lines]
        text = "".join(line + source.newline for line in lines)
        if where == "before":
            return Splice(self._above(statement), self._above(statement), text, order=-1)
        at = source.line_end(max(start, end - 1))
        if at and not LINE_END.search(source.text[at - 1 : at]):
            text = source.newline + text[: -len(source.newline)]  # no line end at the end of the file: keep it so
            return Splice(at, at, text, order=1)
        # In front of all that begins there, and behind what ends a deeper block there.
        return Splice(at, at, text, order=_AFTER - len(indent))

    def _above(self, statement: cst.CSTNode) -> int:
        """Return the offset of the statement's line, or of the comment lines right above it."""
        source = self.script.source
        start = self.script.tree.start(statement)
        line = source.line(start)
        for above in reversed(getattr(statement, "leading_lines", ())):  # not by text: it may be within a string
            if above.comment is None or line <= 3:  # shebang and encoding stay where they are
                break
            line -= 1
        return source.starts[line - 1]

    def _unique_guards(self) -> list[Guard]:
        return list({edit.statement: edit for edit in self.edits if isinstance(edit, Guard)}.values())

    def _guard(self, edit: Guard) -> list[Splice]:
        """Put a statement under an ``if``; further lines of it are indented unless a string goes over them."""
        source, tree = self.script.source, self.script.tree
        start, end = tree.span(edit.statement)
        indent, unit = source.indent(start), tree.module.default_indent
        text = source.text[start:end]
        if LINE_END.search(text) and re.search(r"'''|\"\"\"|\\\r?\n", text):
            return [Splice(start, start, f"if {edit.condition}: ", order=2)]
        head = f"if {edit.condition}:{source.newline}{indent}{unit}"
        splices = [Splice(start, start, head, order=2)]
        for match in LINE_END.finditer(source.text, start, end):
            following = source.text[match.end() : source.line_end(match.end())]
            if following.strip():
                splices.append(Splice(match.end(), match.end(), unit))
        return splices

    def _move(self, edit: Move, splices: list[Splice]) -> list[Splice]:
        source, tree = self.script.source, self.script.tree
        begin, end = tree.span(edit.statement)
        begin, end = source.line_start(begin), source.line_end(max(begin, end - 1))
        inside = [
            s
            for s in splices
            if begin <= s.start and s.end <= end and not (s.start == end and (s.order == 1 or s.order <= _AFTER))
        ]
        rest = [s for s in splices if s not in inside]
        moved = apply(source.text[begin:end], [Splice(s.start - begin, s.end - begin, s.text, s.order) for s in inside])
        if not LINE_END.search(moved[-1:]):
            moved += source.newline
        target = self._above(edit.before)
        return [*rest, Splice(begin, end, ""), Splice(target, target, moved, order=-2)]
