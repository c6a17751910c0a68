"""How inserted code names things."""

from __future__ import annotations

import libcst as cst
import pytest
from support import dedent

from ms_distify.mindspore import names
from ms_distify.model import Need
from ms_distify.plan.spelling import Speller
from ms_distify.reading.script import Script, read_script
from ms_distify.reading.tree import walk


def parts(source: str) -> tuple[Script, cst.CSTNode]:
    """Return a file and the statement `here()` in it."""
    script = read_script(dedent(source).encode(), "train.py", None)
    for node in walk(script.tree.module):
        if isinstance(node, cst.Call) and script.tree.text(node) == "here()":
            return script, script.tree.statement(node)
    raise AssertionError("no here()")


@pytest.mark.parametrize(
    ("source", "wanted", "expected"),
    [
        pytest.param("import mindspore as ms\nhere()", names.SET_SEED, "ms.set_seed", id="alias"),
        pytest.param("import mindspore\nhere()", names.SET_SEED, "mindspore.set_seed", id="module"),
        pytest.param("import mindspore.nn as nn, mindspore\nhere()", names.SET_SEED, "mindspore.set_seed", id="beside"),
        pytest.param("from mindspore import set_seed as s\nhere()", names.SET_SEED, "s", id="bare alias"),
        pytest.param("from mindspore.common import set_seed\nhere()", names.SET_SEED, "set_seed", id="other module"),
        pytest.param(
            "from mindspore import context\nhere()",
            names.SET_PARALLEL,
            "context.set_auto_parallel_context",
            id="context",
        ),
        pytest.param(
            "import mindspore as ms\nfrom mindspore import context\nhere()",
            names.SET_PARALLEL,
            "context.set_auto_parallel_context",
            id="context is preferred where it is used",
        ),
        pytest.param("import mindspore.communication as comm\nhere()", names.INIT, "comm.init", id="communication"),
        pytest.param(
            "from mindspore.communication.management import init\nhere()", names.INIT, "init", id="management"
        ),
        pytest.param(
            "def f():\n    import mindspore as ms\n    here()",
            names.SET_SEED,
            "ms.set_seed",
            id="local import",
        ),
        pytest.param(
            "def f():\n    here()\nimport mindspore as ms",
            names.SET_SEED,
            "ms.set_seed",
            id="import below a function",
        ),
        pytest.param(
            "try:\n    import mindspore as ms\nexcept ImportError:\n    raise\nhere()",
            names.SET_SEED,
            "ms.set_seed",
            id="import in a try",
        ),
        pytest.param("if x:\n    import mindspore as ms\n    here()", names.SET_SEED, "ms.set_seed", id="same branch"),
        pytest.param("import os.path\nhere()", "os", "os", id="os.path binds os"),
    ],
)
def test_own_names_are_used(source: str, wanted: str, expected: str) -> None:
    script, place = parts(source)
    assert Speller(script).spell(wanted, place) == (expected, ())


@pytest.mark.parametrize(
    ("source", "wanted", "expected", "need"),
    [
        pytest.param("here()", "os", "os", Need("os", "", "os"), id="new"),
        pytest.param("os = 1\nhere()", "os", "os_module", Need("os", "", "os_module"), id="taken"),
        pytest.param("here()\nimport os", "os", "os", Need("os", "", "os"), id="imported below: the same thing"),
        pytest.param("def f():\n    import os\nhere()", "os", "os", Need("os", "", "os"), id="imported elsewhere"),
        pytest.param(
            "def f():\n    here()\n    import os",
            "os",
            "os_module",
            Need("os", "", "os_module"),
            id="local, later",
        ),
        pytest.param(
            "import mindspore as ms\nms = 1\nhere()",
            names.SET_SEED,
            "set_seed",
            Need("mindspore", "set_seed", "set_seed"),
            id="alias bound anew",
        ),
        pytest.param(
            "import mindspore as ms\ndef f(ms):\n    here()",
            names.SET_SEED,
            "set_seed",
            Need("mindspore", "set_seed", "set_seed"),
            id="alias shadowed",
        ),
        pytest.param(
            "if x:\n    import mindspore as ms\nhere()",
            names.SET_SEED,
            "set_seed",
            Need("mindspore", "set_seed", "set_seed"),
            id="conditional import",
        ),
        pytest.param(
            "try:\n    pass\nexcept OSError:\n    import mindspore as ms\nhere()",
            names.SET_SEED,
            "set_seed",
            Need("mindspore", "set_seed", "set_seed"),
            id="import in a handler",
        ),
        pytest.param(
            "class A:\n    import mindspore as ms\n    def f(self):\n        here()",
            names.SET_SEED,
            "set_seed",
            Need("mindspore", "set_seed", "set_seed"),
            id="class scope is not seen",
        ),
        pytest.param(
            "init = 1\nhere()",
            names.INIT,
            "ms_init",
            Need("mindspore.communication", "init", "ms_init"),
            id="own init",
        ),
        pytest.param(
            "here()\nimport mindspore as ms",
            names.SET_SEED,
            "set_seed",
            Need("mindspore", "set_seed", "set_seed"),
            id="imported below",
        ),
    ],
)
def test_new_names(source: str, wanted: str, expected: str, need: Need) -> None:
    script, place = parts(source)
    assert Speller(script).spell(wanted, place) == (expected, (need,))


def test_one_name_for_one_thing() -> None:
    script, place = parts("init = 1\nhere()")
    speller = Speller(script)
    assert speller.spell(names.INIT, place) == speller.spell(names.INIT, place)


def test_fresh_names_are_numbered() -> None:
    script, _ = parts("rank_id = dp_rank_id = dp_rank_id_2 = 1\nhere()")
    assert Speller(script).fresh("rank_id", "dp_rank_id") == "dp_rank_id_3"
