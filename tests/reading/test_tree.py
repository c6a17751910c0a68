from __future__ import annotations

import libcst as cst
import pytest

from ms_distify.reading.source import SourceError, decode
from ms_distify.reading.tree import Tree, children, parse, values, walk


def tree(text: str) -> Tree:
    return parse(decode(text.encode(), "x.py"))


TEXTS = [
    pytest.param("", id="empty"),
    pytest.param("\n", id="a line end"),
    pytest.param("# only a comment", id="comment"),
    pytest.param("x = 1", id="no line end"),
    pytest.param("x = 1\n   ", id="spaces at the end"),
    pytest.param("x = 1 \t", id="spaces behind code"),
    pytest.param("if x:\n    y\n\n  \n\t\n", id="blank lines at the end"),
    pytest.param("x = 1 \\\n\n", id="continuation into nothing"),
    pytest.param("x = 1\r\ny = 2\r", id="CR at the end"),
    pytest.param("x = 1\n\x0c\ny = 2\n", id="form feed alone"),
    pytest.param("x = 1\n\x0cy = 2\n", id="form feed before code"),
    pytest.param("if x:\n    z\n\x0c\x0cy = 2\n", id="form feeds after a block"),
    pytest.param("x = '''\n\x0ca\n  '''\ny = 1\n", id="form feed in a string"),
    pytest.param("def f[T](x: T) -> T:\n\treturn (x)\n", id="PEP 695"),
    pytest.param("match x:\n    case [1, *_]:\n        pass\n", id="match"),
    pytest.param("f'{x!r:>{w}}' \"a\" 'b'\n", id="strings"),
    pytest.param("@d\n# c\nasync def f(a, /, *, b=1, **k): return await (g(a))\n", id="async"),
]


@pytest.mark.parametrize("text", TEXTS)
def test_every_node_stands_where_its_text_is(text: str) -> None:
    read = tree(text)
    names = [node for node in walk(read.module) if isinstance(node, cst.Name)]
    assert all(read.text(node) == node.value for node in names)
    for node in walk(read.module):
        if isinstance(node, (cst.Call, cst.Attribute, cst.SimpleString, cst.Integer, cst.FunctionDef)):
            start, end = read.span(node)
            assert read.module.code_for_node(node).strip().strip("()").startswith(text[start:end][:1])
    for node, parent in read.parent.items():
        assert node in list(children(parent))
    assert set(read.parent) | {read.module} == set(walk(read.module))


def test_places() -> None:
    read = tree("import a\n\n# above\n@d\ndef f(x):\n    return (g)(x)  # behind\n")
    function = next(node for node in walk(read.module) if isinstance(node, cst.FunctionDef))
    call = next(node for node in walk(read.module) if isinstance(node, cst.Call))
    assert read.text(function).startswith("@d\ndef f(x):")
    assert read.line(function) == 4
    assert read.text(call) == "(g)(x)"
    assert (read.text(call.func), read.full_text(call.func)) == ("g", "(g)")
    assert isinstance(read.statement(call), cst.SimpleStatementLine)
    assert [type(node).__name__ for node in read.ancestors(call)] == [
        "Return", "SimpleStatementLine", "IndentedBlock", "FunctionDef", "Module",
    ]  # fmt: skip
    assert read.depth() == 8  # Module, FunctionDef, IndentedBlock, SimpleStatementLine, Return, Call, Arg, Name


REFUSED = [
    pytest.param("x = 1\nx = = 1\n", 2, "not valid Python: invalid syntax, near 'x = = 1'", id="Python's own words"),
    pytest.param("a\nb c\n", 2, "not valid Python", id="two names"),
    pytest.param("import x\nprint 'a'\n", 2, "Python 2", id="print"),
    pytest.param("import x\nexec 'a'\n", 2, "Python 2", id="exec"),
    pytest.param("x = 1\n%timeit x\n", 2, "notebook command", id="magic"),
    pytest.param('{"cells": [], "nbformat": 4}', None, "notebook", id="notebook"),
    pytest.param("\n" + "(" * 200 + ")" * 200, 2, "nest 200 deep", id="brackets"),
    pytest.param("\nx = 1" + " + 1" * 10001 + "\n", 2, "10001 operators", id="chain"),
    pytest.param(
        "x = (" + "\n'a'" * 9000 + ")\n", None, "libcst, which ms-distify reads with", id="libcst's own limit"
    ),
]


@pytest.mark.parametrize(("text", "line", "says"), REFUSED)
def test_refused(text: str, line: int | None, says: str) -> None:
    with pytest.raises(SourceError, match=says) as caught:
        tree(text)
    if line is not None:
        assert caught.value.line == line
    assert "\n" not in caught.value.reason


@pytest.mark.parametrize(
    "text",
    [
        "x = [" + "-1, " * 20_000 + "]\n",
        "x = '" + "-+" * 20_000 + "'\n",
        "x = 1  # " + "-" * 20_000 + "\n",
        "x = {" + "'a-b': -1 if y else (2), " * 5_000 + "}\n",
    ],
    ids=["list", "string", "comment", "dictionary"],
)
def test_long_lines_of_data_are_read(text: str) -> None:
    read = tree(text)
    assert read.text(read.module.body[0]) == text.partition("  #")[0].rstrip()


def test_values_leave_out_words_that_name_no_variable() -> None:
    read = tree("f(a.b.c, d=e, *g)[h].i = lambda j: j.k\n")
    words = [node.value for node in values(read.module) if isinstance(node, cst.Name)]
    assert words == ["f", "a", "e", "g", "h", "j", "j"]
