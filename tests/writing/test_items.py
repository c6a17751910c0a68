from __future__ import annotations

import ast

import pytest

from ms_distify.reading.source import decode
from ms_distify.writing.items import append_items
from ms_distify.writing.splice import Splice, apply


def append(text: str, items: list[str], *, parameters: bool = False) -> str:
    source = decode(text.encode(), "x.py")
    insertions = append_items(source, text.index("("), items, before_double_star=parameters)
    after = apply(text, [Splice(at, at, new) for at, new in insertions])
    ast.parse(after)
    kept = list(after)
    for at, new in reversed(insertions):  # what was there is all still there, in its order
        shift = sum(len(other) for where, other in insertions if where < at)
        assert "".join(kept[at + shift : at + shift + len(new)]) == new
        del kept[at + shift : at + shift + len(new)]
    assert "".join(kept) == text
    return after


CALLS = [
    pytest.param("f()", "f(n=1, s=2)", id="empty"),
    pytest.param("f( )", "f(n=1, s=2 )", id="empty with a space"),
    pytest.param("f(  # none\n)", "f(n=1, s=2  # none\n)", id="empty with a comment"),
    pytest.param("f(a)", "f(a, n=1, s=2)", id="one"),
    pytest.param("f(a,)", "f(a, n=1, s=2,)", id="trailing comma"),
    pytest.param("f(a, )", "f(a, n=1, s=2, )", id="trailing comma and space"),
    pytest.param("f (a)", "f (a, n=1, s=2)", id="space before the bracket"),
    pytest.param("f(g(a, b)[1], {2: (3,)})", "f(g(a, b)[1], {2: (3,)}, n=1, s=2)", id="nested"),
    pytest.param("f(*args)", "f(*args, n=1, s=2)", id="star"),
    pytest.param("f(a, **kw)", "f(a, **kw, n=1, s=2)", id="double star"),
    pytest.param("f(a ** b)", "f(a ** b, n=1, s=2)", id="power"),
    pytest.param("f(x for x in y)", "f((x for x in y), n=1, s=2)", id="bare generator"),
    pytest.param("f([x for x in y])", "f([x for x in y], n=1, s=2)", id="list comprehension"),
    pytest.param("f(')', \"(\")", "f(')', \"(\", n=1, s=2)", id="brackets in strings"),
    pytest.param("f('\\')', r'\\')')", "f('\\')', r'\\')', n=1, s=2)", id="escaped quotes"),
    pytest.param("f('''a')\n\"(''')", "f('''a')\n\"(''', n=1, s=2)", id="triple quotes"),
    pytest.param("f('#)')", "f('#)', n=1, s=2)", id="hash in a string"),
    pytest.param("f(f'{a}({b!r:>{w}}')", "f(f'{a}({b!r:>{w}}', n=1, s=2)", id="f-string"),
    pytest.param("f(f\"{d['(']}\")", "f(f\"{d['(']}\", n=1, s=2)", id="f-string with other quotes"),
    pytest.param("f(f'{{(' f'}}')", "f(f'{{(' f'}}', n=1, s=2)", id="doubled braces"),
    pytest.param("f(f'{x:\">9}')", "f(f'{x:\">9}', n=1, s=2)", id="quote in a format"),
    pytest.param("f(f'\\N{LEFT PARENTHESIS}')", "f(f'\\N{LEFT PARENTHESIS}', n=1, s=2)", id="named character"),
    pytest.param("f(f'''{\nx}(''')", "f(f'''{\nx}(''', n=1, s=2)", id="triple f-string"),
    pytest.param("f(a  # )\n  )", "f(a,  # )\n    n=1, s=2\n  )", id="bracket in a comment"),
    pytest.param("f(a, \\\n  b)", "f(a, \\\n  b, n=1, s=2)", id="continuation"),
    pytest.param("f(a,\n  b)", "f(a,\n  b, n=1, s=2)", id="aligned"),
    pytest.param("f(\n    a,\n    b\n)", "f(\n    a,\n    b,\n    n=1,\n    s=2\n)", id="one a line, no comma"),
    pytest.param("f(\n    a,\n    b,\n)", "f(\n    a,\n    b,\n    n=1,\n    s=2,\n)", id="one a line"),
    pytest.param("f(\r\n\ta,\r\n)", "f(\r\n\ta,\r\n\tn=1,\r\n\ts=2,\r\n)", id="tab and CRLF"),
    pytest.param("f(\n    a  # 一\n)", "f(\n    a,  # 一\n    n=1,\n    s=2\n)", id="comment, no comma"),
    pytest.param(
        "f(\n    a,  # one\n    # b,\n)",
        "f(\n    a,  # one\n    n=1,\n    s=2,\n    # b,\n)",
        id="commented out",
    ),
    pytest.param("f(\n    a, b,\n)", "f(\n    a, b,\n    n=1, s=2,\n)", id="several share the last line"),
    pytest.param("f(\n    a, b\n)", "f(\n    a, b,\n    n=1, s=2\n)", id="several share it, no comma"),
    pytest.param("f(a, b,\n)", "f(a, b,\n    n=1, s=2,\n)", id="all on the first line"),
    pytest.param("f(a, g(\n    1,\n))", "f(a, g(\n    1,\n), n=1, s=2)", id="closes with its last item"),
    pytest.param(
        "f(\n    ['x',\n     'y'], 4,\n)",
        "f(\n    ['x',\n     'y'], 4,\n    n=1, s=2,\n)",
        id="indent of the items",
    ),
    pytest.param(
        "f(\n    [\n        1,\n    ],\n)",
        "f(\n    [\n        1,\n    ],\n    n=1,\n    s=2,\n)",
        id="last item long",
    ),
]


@pytest.mark.parametrize(("before", "after"), CALLS)
def test_calls(before: str, after: str) -> None:
    assert append(before, ["n=1", "s=2"]) == after


PARAMETERS = [
    pytest.param("()", "(n=None, s=None)", id="none"),
    pytest.param("(a)", "(a, n=None, s=None)", id="one"),
    pytest.param("(a, /)", "(a, /, n=None, s=None)", id="positional only"),
    pytest.param("(a, *, b)", "(a, *, b, n=None, s=None)", id="keyword only"),
    pytest.param("(a, *args)", "(a, *args, n=None, s=None)", id="star"),
    pytest.param("(**kw)", "(n=None, s=None, **kw)", id="double star only"),
    pytest.param("(a, *args, **kw)", "(a, *args, n=None, s=None, **kw)", id="double star"),
    pytest.param("(a, **kw,)", "(a, n=None, s=None, **kw,)", id="double star and comma"),
    pytest.param("(a, **kw: int)", "(a, n=None, s=None, **kw: int)", id="annotated double star"),
    pytest.param("(a: int = g(1, 2), b=(3,))", "(a: int = g(1, 2), b=(3,), n=None, s=None)", id="defaults"),
    pytest.param("(a=lambda x, y: x)", "(a=lambda x, y: x, n=None, s=None)", id="lambda default"),
    pytest.param("(a: 'List[int]', b: Dict[str, int] = {})",
                 "(a: 'List[int]', b: Dict[str, int] = {}, n=None, s=None)", id="annotations"),
    pytest.param("(a,\n      b=1)", "(a,\n      b=1, n=None, s=None)", id="aligned"),
    pytest.param("(\n    a,\n    **kw,\n)",
                 "(\n    a,\n    n=None,\n    s=None,\n    **kw,\n)", id="hanging, **"),
    pytest.param("(\n    a,  # first\n)", "(\n    a,  # first\n    n=None,\n    s=None,\n)", id="hanging"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), PARAMETERS)
def test_parameters(before: str, after: str) -> None:
    out = append(f"def f{before}: pass\n", ["n=None", "s=None"], parameters=True)
    assert out == f"def f{after}: pass\n"


def test_same_quotes_within_an_f_string() -> None:
    """PEP 701; ast of Python 3.11 and older does not read it, so only the text is compared."""
    text = 'f(f"{d[")"]}" , f"{"(" + f"{1:{"2"}}"}")'
    [(at, new)] = append_items(decode(text.encode(), "x.py"), 1, ["n=1"])
    assert (at, new) == (len(text) - 1, ", n=1")
