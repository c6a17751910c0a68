"""A parsed file: the libcst tree, where each node stands in the text, and who its parent is.

libcst's own position and scope providers cost several parses (DESIGN 5). Here the text is generated once,
which proves that the tree gives the file back byte for byte, and offsets fall off on the way.
"""

from __future__ import annotations

import ast
import dataclasses
import re
import warnings
from collections.abc import Iterator
from typing import Any, Union

import libcst as cst
from libcst._nodes.internal import CodegenState  # what libcst's own position providers derive from

from .source import LINE_END, MAX_NESTING, Source, SourceError, deepest_brackets

# Anything that holds a list of statements.
Block = Union[cst.Module, cst.IndentedBlock, cst.SimpleStatementSuite, cst.SimpleStatementLine]
# Fields that hold only layout: never a child that means something.
_LAYOUT_NAMES = """
    comma lpar rpar semicolon dot equal colon leading_lines lines_after_decorators header footer
    indent lbracket rbracket newline trailing_whitespace leading_whitespace lines_after_module lbrace rbrace
    whitespace_before_colon asynchronous"""
_LAYOUT = frozenset(_LAYOUT_NAMES.split())
# White space behind the last line of code; a line end behind a backslash belongs to the code.
_TAIL = re.compile(r"(?<![ \t\f\r\n\\])[ \t\f]*(\r\n|\r|\n)?[ \t\f\r\n]*\Z")
# A form feed in front of code.
_PAGE = re.compile(r"(\r\n|\r|\n)(\f+)(?=[^\s])")
# CPython 3.13 compiles 9,900 of these in one expression, 3.12 and older 2,900; conjunctions do not nest.
_MAX_CHAIN = 10_000
_CHAIN_END = re.compile(r"'[^'\\\r\n]*'|\"[^\"\\\r\n]*\"|[,;:]|(?<![=!<>])=(?!=)|\b(?:and|or)\b|#.*")
_OPERATOR = re.compile(r"[-+*/%@&|^~<>.(\[]|\b(?:not|if|await)\b")
_MAGIC = re.compile(r"^\s*[%!]")
_PYTHON2 = re.compile(r"^\s*(print\s+[^\s(=.,)]|exec\s+['\"]|except\s+[\w.]+\s*,\s*\w+\s*:|raise\s+\w+\s*,)")


class _Span:
    """Records from where to where a node's own text goes; lighter than a generator context manager."""

    __slots__ = ("end_node", "node", "start", "start_node", "state")

    def __init__(
        self,
        state: _OffsetState,
        node: cst.CSTNode,
        start_node: cst.CSTNode | None,
        end_node: cst.CSTNode | None,
    ) -> None:
        self.state, self.node = state, node
        self.start_node, self.end_node = start_node, end_node

    def __enter__(self) -> None:
        self.start = self.state.offset

    def __exit__(self, *_: object) -> None:
        spans = self.state.spans
        start, end = self.start, self.state.offset
        if self.start_node is not None and self.start_node in spans:
            start = spans[self.start_node][0]
        if self.end_node is not None and self.end_node in spans:
            end = spans[self.end_node][1]
        spans[self.node] = (start, end)


class _OffsetState(CodegenState):
    """Code generation that counts characters."""

    def __init__(self, module: cst.Module) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.offset = 0
        self.spans: dict[cst.CSTNode, tuple[int, int]] = {}

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        self.offset += len(value)

    def add_indent_tokens(self) -> None:
        for value in self.indent_tokens:
            self.tokens.append(value)
            self.offset += len(value)

    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> Any:
        return _Span(self, node, start_node, end_node)


_FIELDS: dict[type, tuple[str, ...]] = {}


def _child_fields(cls: type) -> tuple[str, ...]:
    names = tuple(
        field.name
        for field in dataclasses.fields(cls)
        if field.name not in _LAYOUT and not field.name.startswith("whitespace")
    )
    _FIELDS[cls] = names
    return names


# isinstance() asks an abstract base class, which is slow; there are few types of values.
_IS_NODE: dict[type, bool] = {}


def _child_list(node: cst.CSTNode) -> list[cst.CSTNode]:
    cls = type(node)
    found: list[cst.CSTNode] = []
    for name in _FIELDS.get(cls) or _child_fields(cls):
        value = getattr(node, name)
        if value is None:
            continue
        kind = type(value)
        if kind is list or kind is tuple:
            found += value
            continue
        is_node = _IS_NODE.get(kind)
        if is_node is None:
            is_node = _IS_NODE[kind] = issubclass(kind, cst.CSTNode)
        if is_node:
            found.append(value)
    return found


def children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the child nodes that carry meaning (no white space or punctuation) in the order of the source."""
    return iter(_child_list(node))


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield ``node`` and everything below it, parents before children, in the order of the source."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(_child_list(node)))


def values(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield what :func:`walk` does, but for words that name no variable: those behind a dot, and of keywords."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, (cst.Attribute, cst.Arg)):
            stack.append(node.value)
        else:
            stack.extend(reversed(_child_list(node)))


class Tree:
    """A parsed file.

    Attributes:
        source: the text the tree was read from.
        module: the libcst tree; never changed.
        parent: the parent of every node that carries meaning.
    """

    def __init__(self, source: Source, module: cst.Module, spans: dict[cst.CSTNode, tuple[int, int]]) -> None:
        self.source = source
        self.module = module
        self._spans = spans
        self.parent: dict[cst.CSTNode, cst.CSTNode] = {}
        stack: list[cst.CSTNode] = [module]
        while stack:
            node = stack.pop()
            if isinstance(node, (cst.FunctionDef, cst.ClassDef)) and node.decorators:
                # libcst's own span of it starts at `def`
                spans[node] = (spans[node.decorators[0]][0], spans[node][1])
            below = _child_list(node)
            self.parent.update(dict.fromkeys(below, node))
            stack += below

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return the character offsets (start, end) of a node, without its surrounding parentheses.

        A statement's span starts at its first token (its first decorator's for a decorated one), and leaves
        out leading comments and the trailing comment.
        """
        found = self._spans.get(node)
        if found is None:
            parts = [self.span(child) for child in children(node)]
            if not parts:
                raise KeyError(type(node).__name__)
            found = self._spans[node] = (parts[0][0], parts[-1][1])
        return found

    def start(self, node: cst.CSTNode) -> int:
        """Return the character offset of a node's first token."""
        return self.span(node)[0]

    def line(self, node: cst.CSTNode) -> int:
        """Return the 1-based line of a node's first token."""
        return self.source.line(self.span(node)[0])

    def text(self, node: cst.CSTNode) -> str:
        """Return the source text of a node, without its surrounding parentheses."""
        start, end = self.span(node)
        return self.source.text[start:end]

    def full_text(self, node: cst.BaseExpression) -> str:
        """Return the source text of an expression with its own parentheses, if it has any."""
        return self.module.code_for_node(node)

    def statement(self, node: cst.CSTNode) -> cst.CSTNode:
        """Return the innermost statement line or compound statement that ``node`` stands in."""
        while not isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            parent = self.parent.get(node)
            if parent is None or isinstance(parent, cst.SimpleStatementSuite):
                return node
            node = parent
        return node

    def depth(self) -> int:
        """Return how many nodes stand within each other at the deepest place."""
        depth: dict[cst.CSTNode, int] = {self.module: 1}
        for node, parent in self.parent.items():  # parents come before their children
            depth[node] = depth[parent] + 1
        return max(depth.values())

    def nodes(self, *kinds: type[cst.CSTNode]) -> Iterator[cst.CSTNode]:
        """Yield all nodes of some kinds."""
        return (node for node in self.parent if isinstance(node, kinds))

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the parents of a node, innermost first."""
        while node in self.parent:
            node = self.parent[node]
            yield node


def parse(source: Source) -> Tree:
    """Parse a file into a tree with offsets.

    Raises:
        SourceError: not Python that libcst can read, nested too deeply, or not given back byte for byte.
    """
    text = source.text
    if text.lstrip().startswith("{") and '"cells"' in text and '"nbformat"' in text:
        raise SourceError("a notebook, not a Python script; export it first: jupyter nbconvert --to script")
    deepest, where = deepest_brackets(text)
    if deepest >= MAX_NESTING:
        raise SourceError(f"brackets nest {deepest} deep; Python itself stops at 200", source.line(where))
    _check_chains(source)
    readable = _without_tail(_without_form_feeds(text))
    try:
        module = cst.parse_module(readable)
        state = _OffsetState(module)
        module._codegen(state)
    except cst.ParserSyntaxError as error:
        raise _explain(source, error) from None
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except RecursionError:
        raise SourceError("expressions nest too deeply to be read; split the longest one") from None
    except BaseException as error:  # libcst's native parser raises panics that are no Exception (FACTS 6)
        raise SourceError(f"libcst cannot read it ({type(error).__name__})") from None
    generated = "".join(state.tokens)
    if generated != readable and generated + (_TAIL.search(readable) or [""])[0] != readable:
        at = next((i for i, (a, b) in enumerate(zip(generated, readable)) if a != b), len(generated))
        raise SourceError("libcst would not give this file back byte for byte", source.line(min(at, len(text))))
    return Tree(source, module, state.spans)


def _without_form_feeds(text: str) -> str:
    """Return text of the same length in which form feeds that only lay out code are something libcst keeps.

    libcst loses a form feed at the start of a line (FACTS 6). One that stands alone on its line reads as a
    blank
    line either way, so it becomes a space. Before code a space would be an indentation, so there it becomes
    a space at the end of the line above. Every token stays at its offset.
    """
    if "\f" not in text:
        return text
    text = re.sub(r"^[ \t\f]*\f[ \t\f]*$", lambda match: " " * len(match.group()), text, flags=re.MULTILINE)
    return _PAGE.sub(lambda match: " " * len(match.group(2)) + match.group(1), text)


def _without_tail(text: str) -> str:
    """Return text without the white space behind its last line, some of which libcst loses (FACTS 6)."""
    match = _TAIL.search(text)
    return text[: match.start()] + (match.group(1) or "") if match else text


def _check_chains(source: Source) -> None:
    """Refuse chains of operators that no Python compiles: libcst would take minutes for one."""
    starts = source.starts
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(source.text)]), 1):
        if end - start > _MAX_CHAIN:
            for part in _CHAIN_END.split(source.text[start:end]):
                operators = len(part) > _MAX_CHAIN and len(_OPERATOR.findall(part))
                if operators > _MAX_CHAIN:
                    raise SourceError(f"an expression of {operators} operators; Python itself stops at 10000", number)


def _explain(source: Source, error: cst.ParserSyntaxError) -> SourceError:
    """Return the parser's error in one line that names the likely cause."""
    line = max(1, min(error.raw_line, len(source.starts)))
    lines = LINE_END.split(source.text)
    for number, content in enumerate(lines, 1):
        if _MAGIC.match(content) and abs(number - line) <= 1:
            return SourceError("a notebook command, not Python; remove the line or export with nbconvert", number)
    for number in (line, line - 1):
        if 1 <= number <= len(lines) and _PYTHON2.match(lines[number - 1]):
            return SourceError("Python 2 syntax; convert the file to Python 3 first", number)
    why = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source.text)
    except SyntaxError as known:  # Python's own parser knows better what is wrong and where
        line, why = known.lineno or line, f": {known.msg}"
    except (RecursionError, MemoryError, ValueError):
        pass
    else:
        return SourceError("Python reads it, but libcst, which ms-distify reads with, does not", line)
    shown = lines[line - 1].strip()[:60] if line <= len(lines) else ""
    return SourceError(f"not valid Python{why}" + (f", near '{shown}'" if shown else ""), line)
