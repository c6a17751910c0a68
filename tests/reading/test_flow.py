"""Where values come from: walks over small programs, end by end."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from ms_distify.reading.flow import Origin
from ms_distify.reading.program import Program
from ms_distify.reading.script import read_script
from ms_distify.reading.tree import walk


def ends(source: str, folder: Path | None = None) -> list[Origin]:
    """Return where the argument of ``use(...)`` comes from."""
    file = None
    if folder is not None:
        file = folder / "main.py"
        file.write_text(source, encoding="utf-8")
    script = read_script(source.encode(), "main.py", file)
    program = Program(script)
    for node in walk(script.tree.module):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "use":
            return program.flow.origins(script, node.args[0].value)
    raise AssertionError("no use(...)")


def names(source: str, folder: Path | None = None) -> list[str]:
    """Return the library calls (and names of other ends) that the argument of ``use(...)`` comes from."""
    return sorted(origin.qualified or origin.kind for origin in ends(source, folder))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param("use(lib.a())\n", ["lib.a"], id="call"),
        pytest.param("x = lib.a()\nx = lib.b(x)\nuse(x)\n", ["lib.b"], id="rebinding"),
        pytest.param("x = lib.a() if c else lib.b()\nuse(x)\n", ["lib.a", "lib.b"], id="conditional"),
        pytest.param("x = c or lib.b()\nuse(x)\n", ["c", "lib.b"], id="or"),
        pytest.param("a, (b, c) = lib.a(), (lib.b(), lib.c())\nuse(c)\n", ["lib.c"], id="nested unpacking"),
        pytest.param("a = b = lib.a()\nuse(b)\n", ["lib.a"], id="chained assignment"),
        pytest.param("x = {'a': lib.a(), 'b': lib.b()}\nuse(x['b'])\n", ["lib.b"], id="dictionary"),
        pytest.param("x = dict(a=lib.a(), b=lib.b())\nuse(x['b'])\n", ["lib.b"], id="dict()"),
        pytest.param("x = {}\nx['a'] = lib.a()\nx['b'] = lib.b()\nuse(x['a'])\n", ["lib.a"], id="filled dictionary"),
        pytest.param("x = [lib.a(), lib.b()]\nuse(x[-1])\n", ["lib.b"], id="list"),
        pytest.param("x = [lib.a()]\nx.append(lib.b())\nfor y in x:\n    use(y)\n", ["lib.a", "lib.b"], id="append"),
        pytest.param("x = [lib.a(i) for i in n]\nuse(x[0])\n", ["lib.a"], id="comprehension"),
        pytest.param("x = {k: lib.a(k) for k in n}\nuse(x['a'])\n", ["lib.a"], id="dictionary comprehension"),
        pytest.param("for i, x in enumerate(zip(lib.a(), lib.b())):\n    use(x[1])\n", ["lib.b"], id="enumerate, zip"),
        pytest.param("for x in iter(list(lib.a())):\n    use(x)\n", ["lib.a"], id="transparent built-ins"),
        pytest.param("use(getattr(lib, 'a')())\n", ["lib.a"], id="getattr of a literal"),
        pytest.param("def f(p):\n    return p\nuse(f(lib.a()))\n", ["lib.a"], id="through a function"),
        pytest.param("def f(p, q=lib.b()):\n    return q\nuse(f(1))\n", ["lib.b"], id="default"),
        pytest.param("def f(*, q):\n    return q\nuse(f(q=lib.b()))\n", ["lib.b"], id="keyword"),
        pytest.param("def f(p):\n    use(p)\nf(lib.a())\nf(lib.b())\n", ["lib.a", "lib.b"], id="all call sites"),
        pytest.param("f = lambda p: p\nuse(f(lib.a()))\n", ["lib.a"], id="lambda"),
        pytest.param(
            "from functools import partial\ndef f(p, q):\n    return q\ng = partial(f, 1)\nuse(g(lib.a()))\n",
            ["lib.a"],
            id="partial shifts positions",
        ),
        pytest.param(
            "from functools import partial\ndef f(p, q):\n    return q\ng = partial(f, q=lib.a())\nuse(g(1))\n",
            ["lib.a"],
            id="partial binds",
        ),
        pytest.param(
            "def f(a):\n    if a:\n        return lib.a()\n    return lib.b()\nuse(f(True))\n",
            ["lib.a"],
            id="branch by literal",
        ),
        pytest.param(
            "def f(a):\n    if not a:\n        return lib.a()\n    return lib.b()\nuse(f(True))\n",
            ["lib.b"],
            id="early return",
        ),
        pytest.param(
            "def f(m='x'):\n    if m == 'x':\n        y = lib.a()\n    else:\n        y = lib.b()\n"
            "    return y\nuse(f())\n",
            ["lib.a"],
            id="branch by default",
        ),
        pytest.param(
            "a = True\nx = lib.a() if a else lib.b()\nuse(x)\n", ["lib.a", "lib.b"], id="a flag is no context"
        ),
        pytest.param(
            "class C:\n    def __init__(self, p):\n        self.v = p\nuse(C(lib.a()).v)\n",
            ["lib.a"],
            id="attribute",
        ),
        pytest.param(
            "class C:\n    def f(self):\n        return self.g()\n    def g(self):\n        return lib.a()\n"
            "class D(C):\n    def g(self):\n        return lib.b()\nuse(D().f())\n",
            ["lib.a", "lib.b"],
            id="override",
        ),
        pytest.param(
            "class C:\n    @property\n    def v(self):\n        return lib.a()\nuse(C().v)\n",
            ["lib.a"],
            id="property",
        ),
        pytest.param(
            "class C:\n    @staticmethod\n    def f(p):\n        return p\nuse(C.f(lib.a()))\n",
            ["lib.a"],
            id="static",
        ),
        pytest.param(
            "class C:\n    def __call__(self, p):\n        return p\nc = C()\nuse(c(lib.a()))\n",
            ["lib.a"],
            id="__call__",
        ),
        pytest.param(
            "class A:\n    def f(self):\n        return lib.a()\nclass B(A):\n    def g(self):\n        return super().f()\nuse(B().g())\n",
            ["lib.a"],
            id="super()",
        ),
        pytest.param(
            "class A:\n    def g(self):\n        return self.f()\n    def f(self):\n        pass\n"
            "class B(A):\n    def f(self):\n        return lib.a()\nuse(B().g())\n",
            ["lib.a"],
            id="left to the heirs",
        ),
        pytest.param(
            "def both():\n    return lib.a(), lib.b()\ndef f(n, p, q):\n    use(q)\nf(1, *both())\n",
            ["lib.b"],
            id="an element of star arguments",
        ),
        pytest.param("def g():\n    yield lib.a()\nfor x in g():\n    use(x)\n", ["lib.a"], id="generator's element"),
        pytest.param("def g():\n    yield from lib.a()\nfor x in g():\n    use(x)\n", ["lib.a"], id="yield from"),
        pytest.param("def g():\n    yield 1\nuse(g())\n", ["generator"], id="generator as a whole"),
        pytest.param(
            "class C:\n    def __iter__(self):\n        return iter(lib.a())\nfor x in C():\n    use(x)\n",
            ["lib.a"],
            id="__iter__",
        ),
        pytest.param(
            "def outer():\n    x = lib.a()\n    def inner():\n        return x\n    return inner\nuse(outer()())\n",
            ["lib.a"],
            id="closure",
        ),
    ],
)
def test_ends(source: str, found: list[str]) -> None:
    assert names("import lib\n" + source) == found


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        pytest.param("def f(p):\n    use(p)\n", "not called here", id="never called"),
        pytest.param("def f(p, q):\n    use(q)\nf(*a, 1)\n", "* or **", id="star arguments"),
        pytest.param("def f(p):\n    use(p)\nf(**a)\n", "* or **", id="double star arguments"),
        pytest.param("x = []\nuse(x[0])\n", "nothing is seen to be put in", id="empty list"),
        pytest.param("x = {'a': 1}\nuse(x['b'])\n", "no entry 'b'", id="missing key"),
        pytest.param("use(a ** b)\n", "computed value", id="arithmetic"),
        pytest.param("def f():\n    pass\nuse(f())\n", "returns nothing", id="no return"),
        pytest.param("class C:\n    pass\nuse(C().v)\n", "set nowhere", id="attribute never set"),
    ],
)
def test_lost_with_a_reason(source: str, reason: str) -> None:
    [end] = ends(source)
    assert end.kind == "unknown"
    assert reason in end.reason


def test_calls_on_the_way_are_the_context() -> None:
    [end] = ends("import lib\ndef a():\n    return lib.x()\ndef b():\n    return a()\nuse(b())\n")
    assert [edge.script.line(edge.call) for edge in end.calls] == [6, 5]


def test_a_value_that_depends_on_itself_ends() -> None:
    assert names("import lib\nx = lib.a()\nwhile c:\n    x = f(x)\n    def f(y):\n        return y\nuse(x)\n") == [
        "lib.a"
    ]


def test_many_lists_that_feed_each_other_end_in_time() -> None:
    """Every list is filled from every other: ways multiply, places do not."""
    count = 30
    lines = [f"l{i} = []" for i in range(count)]
    lines += [f"for v in l{j}:\n    l{i}.append(v)" for i in range(count) for j in range(count)]
    assert ends("\n".join([*lines, "use(l0[0])\n"]))


# -- over files ----------------------------------------------------------------------------------------------


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("files", "main"),
    [
        pytest.param(
            {"data": "import lib\ndef f():\n    return lib.a()\n"},
            "import data\nuse(data.f())\n",
            id="import",
        ),
        pytest.param(
            {"data": "import lib\ndef f():\n    return lib.a()\n"},
            "from data import f as g\nuse(g())\n",
            id="from",
        ),
        pytest.param({"data": "import lib\nx = lib.a()\n"}, "from data import *\nuse(x)\n", id="star"),
        pytest.param(
            {"src__data": "import lib\ndef f():\n    return lib.a()\n"},
            "from src.data import f\nuse(f())\n",
            id="folder",
        ),
        pytest.param(
            {"src__data": "import lib\ndef f():\n    return lib.a()\n"},
            "import src.data\nuse(src.data.f())\n",
            id="dotted import",
        ),
        pytest.param(
            {"src__data": "import lib\nx = lib.a()\n", "src__more": "from .data import x as y\n"},
            "from src.more import y\nuse(y)\n",
            id="relative",
        ),
        pytest.param(
            {
                "one": "import lib\nimport two\nx = lib.a()\n",
                "two": "import one\ndef f():\n    return one.x\n",
            },
            "import two\nuse(two.f())\n",
            id="circular",
        ),
        pytest.param(
            {"random": "import lib\ndef f():\n    return lib.a()\n"},
            "import random\nuse(random.f())\n",
            id="named like a library",
        ),
    ],
)
def test_files(tmp_path: Path, files: dict[str, str], main: str) -> None:
    write(tmp_path, **files)
    assert names(main, tmp_path) == ["lib.a"]


def test_files_that_take_a_name_from_each_other(tmp_path: Path) -> None:
    write(
        tmp_path,
        one="from two import f\n",
        two="try:\n    from one import f\nexcept ImportError:\n    import lib\n    f = lib.a\n",
    )
    assert names("from one import f\nuse(f())\n", tmp_path) == ["lib.a"]


def test_package_with_init(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("from .inner import f\n")
    (tmp_path / "pkg" / "inner.py").write_text("import lib\ndef f():\n    return lib.a()\n")
    assert names("from pkg import f\nuse(f())\n", tmp_path) == ["lib.a"]
    assert names("import pkg\nuse(pkg.f())\n", tmp_path) == ["lib.a"]


def test_package_that_imports_its_own_modules(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("from . import inner\n")
    (tmp_path / "pkg" / "inner.py").write_text("import lib\ndef f():\n    return lib.a()\n")
    assert names("import pkg\nuse(pkg.inner.f())\n", tmp_path) == ["lib.a"]
    assert names("from pkg import inner\nuse(inner.f())\n", tmp_path) == ["lib.a"]


@pytest.mark.parametrize(
    "added",
    [
        pytest.param("sys.path.append('../shared')", id="literal"),
        pytest.param("sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'shared'))", id="join"),
        pytest.param("sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))) )", id="dirname"),
        pytest.param("here = os.path.split(__file__)[0]\nsys.path.append(os.path.split(here)[0])", id="split"),
        pytest.param("root = Path(__file__).resolve().parent.parent\nsys.path.append(str(root))", id="pathlib"),
    ],
)
def test_sys_path(tmp_path: Path, added: str) -> None:
    inside = "shared" in added
    write(tmp_path, **{"shared__data" if inside else "data": "import lib\ndef f():\n    return lib.a()\n"})
    folder = tmp_path / "scripts"
    folder.mkdir()
    source = f"import os\nimport sys\nfrom pathlib import Path\n{added}\nfrom data import f\nuse(f())\n"
    assert names(source, folder) == ["lib.a"]
