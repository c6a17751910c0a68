"""Which binding of a name a use can see."""

from __future__ import annotations

import libcst as cst
import pytest

from ms_distify.reading.script import Script, read_script
from ms_distify.reading.tree import walk


def seen(source: str, name: str = "x") -> list[int]:
    """Return the lines of the bindings that the argument of ``use(x)`` can see."""
    script = read_script(source.encode(), "t.py")
    return sorted(script.line(binding.node) for binding in script.bindings.lookup(used(script, name)))


def used(script: Script, name: str) -> cst.Name:
    for node in walk(script.tree.module):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "use":
            argument = node.args[0].value
            assert isinstance(argument, cst.Name)
            assert argument.value == name
            return argument
    raise AssertionError("no use(...)")


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        pytest.param("use(x)\n", [], id="unknown name"),
        pytest.param("x = 1\nuse(x)\n", [1], id="assigned"),
        pytest.param("x = 1\nx = 2\nuse(x)\n", [2], id="assigned again"),
        pytest.param("x = 1\nx = use(x)\n", [1], id="on its own right side"),
        pytest.param("x = 1\nif a:\n    x = 2\nuse(x)\n", [1, 3], id="one branch"),
        pytest.param("x = 1\nif a:\n    x = 2\nelse:\n    x = 3\nuse(x)\n", [3, 5], id="both branches"),
        pytest.param("x = 1\nif a:\n    x = 2\n    use(x)\n", [3], id="inside the branch"),
        pytest.param("x = 1\nfor i in a:\n    use(x)\n    x = 2\n", [1, 4], id="round a loop"),
        pytest.param("x = 1\nfor x in a:\n    use(x)\n", [2], id="loop target"),
        pytest.param("x = 1\nfor x in a:\n    pass\nuse(x)\n", [1, 2], id="behind the loop"),
        pytest.param("try:\n    x = 1\nexcept E:\n    x = 2\nuse(x)\n", [2, 4], id="try"),
        pytest.param("with a as x:\n    use(x)\n", [1], id="with"),
        pytest.param("import m as x\nuse(x)\n", [1], id="import"),
        pytest.param("x = 1\ndef f(x):\n    use(x)\n", [2], id="parameter shadows"),
        pytest.param("x = 1\ndef f():\n    x = 2\n    use(x)\n", [3], id="local shadows"),
        pytest.param("x = 1\ndef f():\n    use(x)\nx = 2\n", [1, 4], id="a function sees every global"),
        pytest.param("def f():\n    x = 1\n    def g():\n        use(x)\n", [2], id="closure"),
        pytest.param(
            "x = 1\nclass C:\n    x = 2\n    def f(self):\n        use(x)\n", [1], id="class scope is skipped"
        ),
        pytest.param("def f():\n    global x\n    x = 1\nuse(x)\n", [3], id="global"),
        pytest.param("[use(x) for x in a]\n", [1], id="comprehension"),
        pytest.param("x = [1]\n[use(x) for y in a]\n", [1], id="from a comprehension outwards"),
        pytest.param("(x := 1)\nuse(x)\n", [1], id="walrus"),
        pytest.param("x = 1\nif a:\n    x = 2\n    raise E\nuse(x)\n", [1], id="a branch that leaves"),
        pytest.param("use(x)\nx = 1\n", [1 + 1], id="only a later one"),
    ],
)
def test_lookup(source: str, lines: list[int]) -> None:
    assert seen(source) == lines


@pytest.mark.parametrize(
    ("source", "qualified"),
    [
        pytest.param("import a.b\nuse(a)\n", "a", id="dotted import binds the top"),
        pytest.param("import a.b as a\nuse(a)\n", "a.b", id="as"),
        pytest.param("from p import a\nuse(a)\n", "p.a", id="from"),
        pytest.param("from . import a\nuse(a)\n", ".a", id="relative"),
        pytest.param("from ..p import b as a\nuse(a)\n", "..p.b", id="relative with module"),
    ],
)
def test_imports(source: str, qualified: str) -> None:
    script = read_script(source.encode(), "t.py")
    [binding] = script.bindings.lookup(used(script, "a"))
    assert binding.qualified == qualified


def test_what_functions_give() -> None:
    script = read_script(b"def f():\n    return 1\ndef g():\n    yield 2\n    yield from h()\nlambda: 3\n", "t.py")
    functions = {node.name.value: node for node in walk(script.tree.module) if isinstance(node, cst.FunctionDef)}
    assert len(script.bindings.returns[functions["f"]]) == 1
    assert functions["f"] not in script.bindings.yields
    assert len(script.bindings.yields[functions["g"]]) == 2


def test_what_is_put_into_attributes_and_items() -> None:
    script = read_script(b"self.a, self.b = pair\nd['k'] = v\n", "t.py")
    assert [(t.attr.value, path) for t, _, path in script.bindings.attribute_assignments] == [
        ("a", (("item", 0),)),
        ("b", (("item", 1),)),
    ]
    assert len(script.bindings.item_assignments) == 1
