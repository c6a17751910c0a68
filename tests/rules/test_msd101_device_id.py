"""MSD101: the device id comes from the launcher."""

from __future__ import annotations

import pytest
from support import HEAD, KEPT, NOTED, TRAINING, changed_lines, found, refused, run

DATA = 'train = ds.MnistDataset("/d").batch(8, drop_remainder=True)\n'
FOLLOWS = 'int(os.getenv("DEVICE_ID", "0")) if int(os.getenv("RANK_SIZE", "1")) > 1 else '


def program(context: str, before: str = "") -> str:
    """Return a training program that sets its context so."""
    return before + HEAD + context + "\n" + DATA + TRAINING


@pytest.mark.parametrize(
    ("context", "before"),
    [
        pytest.param("ms.set_context(mode=ms.GRAPH_MODE)", "", id="no device id"),
        pytest.param('ms.set_device("Ascend")', "", id="set_device without an id: msrun picks"),
        pytest.param(
            'ms.set_context(device_id=int(os.getenv("DEVICE_ID", 0)))',
            "import os\n",
            id="environment, default",
        ),
        pytest.param('ms.set_context(device_id=int(os.environ["DEVICE_ID"]))', "import os\n", id="environment"),
        pytest.param(
            'device_id = int(os.getenv("DEVICE_ID", "0"))\nms.set_context(device_id=device_id)',
            "import os\n",
            id="environment through a variable",
        ),
        pytest.param('cfg = {"mode": 0}\nms.set_context(**cfg)', "", id="** of a dictionary without an id"),
        pytest.param("cfg = dict(mode=0)\nms.set_context(mode=0)", "", id="unused dictionary"),
    ],
)
def test_kept(context: str, before: str) -> None:
    result = run(program(context, before))
    assert not result.refused, result.findings
    for line in context.splitlines():
        assert line in result.output.decode().splitlines()
    assert {status for status, _ in found(result, "MSD101")} == {KEPT}


@pytest.mark.parametrize(
    ("context", "after", "before"),
    [
        pytest.param(
            'context.set_context(mode=context.GRAPH_MODE, device_target="GPU", device_id=3)',
            'context.set_context(mode=context.GRAPH_MODE, device_target="GPU", '
            'device_id=int(os.getenv("DEVICE_ID", "3")))',
            "from mindspore import context\n",
            id="C02",
        ),
        pytest.param(
            'ms.set_device("Ascend", 0)',
            'ms.set_device("Ascend", int(os.getenv("DEVICE_ID", "0")))',
            "",
            id="C09 positional in set_device",
        ),
        pytest.param(
            'ms.set_device(device_id=2, device_target="CPU")',
            'ms.set_device(device_id=int(os.getenv("DEVICE_ID", "2")), device_target="CPU")',
            "",
            id="set_device, keywords in any order",
        ),
        pytest.param(
            "ms.context.set_context(device_id=1)",
            'ms.context.set_context(device_id=int(os.getenv("DEVICE_ID", "1")))',
            "",
            id="ms.context",
        ),
        pytest.param(
            "mindspore.set_context(device_id=1)",
            'mindspore.set_context(device_id=int(os.getenv("DEVICE_ID", "1")))',
            "import mindspore\n",
            id="mindspore",
        ),
        pytest.param(
            "set_context(device_id=1)",
            'set_context(device_id=int(os.getenv("DEVICE_ID", "1")))',
            "from mindspore import set_context\n",
            id="bare",
        ),
        pytest.param(
            "sc(device_id=1)",
            'sc(device_id=int(os.getenv("DEVICE_ID", "1")))',
            "from mindspore.context import set_context as sc\n",
            id="aliased bare",
        ),
        pytest.param(
            "set_context(device_id=1)",
            'set_context(device_id=int(os.getenv("DEVICE_ID", "1")))',
            "try:\n    from mindspore import set_context\n"
            "except ImportError:\n    from mindspore.context import set_context\n",
            id="try/except import",
        ),
        pytest.param(
            "ms.set_context(device_id=args.device_id)",
            f"ms.set_context(device_id={FOLLOWS}args.device_id)",
            "import argparse\nargs = argparse.ArgumentParser().parse_args()\n",
            id="argument",
        ),
        pytest.param(
            "ms.set_context(device_id=args.device_id or 0)",
            f"ms.set_context(device_id={FOLLOWS}args.device_id or 0)",
            "import argparse\nargs = argparse.ArgumentParser().parse_args()\n",
            id="expression binds weaker than the condition",
        ),
        pytest.param(
            'ms.set_context(device_id=cfg["id"])',
            f'ms.set_context(device_id={FOLLOWS}cfg["id"])',
            'import json\ncfg = json.load(open("c.json"))\n',
            id="config",
        ),
        pytest.param(
            "ms.set_context(device_id=(3))  # card",
            'ms.set_context(device_id=(int(os.getenv("DEVICE_ID", "3"))))  # card',
            "",
            id="parentheses and comment stay",
        ),
        pytest.param(
            "if args.x: ms.set_context(device_id=1)",
            'if args.x: ms.set_context(device_id=int(os.getenv("DEVICE_ID", "1")))',
            "import argparse\nargs = argparse.ArgumentParser().parse_args()\n",
            id="one-line if",
        ),
    ],
)
def test_follows_launcher(context: str, after: str, before: str) -> None:
    gone, new = changed_lines(program(context, before))
    assert context in gone
    assert after in new
    assert "import os" in new


def test_every_branch() -> None:
    branches = (
        'if args.t == "Ascend":\n    ms.set_context(device_target="Ascend", device_id=args.id)\n'
        'elif args.t == "GPU":\n    ms.set_context(device_target="GPU", device_id=0)\n'
        'else:\n    ms.set_context(device_target="CPU")'
    )
    _, new = changed_lines(program(branches, "import argparse\nargs = argparse.ArgumentParser().parse_args()\n"))
    assert f'    ms.set_context(device_target="Ascend", device_id={FOLLOWS}args.id)' in new
    assert '    ms.set_context(device_target="GPU", device_id=int(os.getenv("DEVICE_ID", "0")))' in new
    # one block behind the whole chain, not one a branch
    assert sum("init()" in line for line in new) == 1
    assert "rank_id = rank_size = None  # one card" in new


@pytest.mark.parametrize(
    ("before", "spelled"),
    [
        pytest.param("import os\n", "os", id="imported"),
        pytest.param("import os.path\n", "os", id="import os.path binds os"),
        pytest.param("import os\nimport os.path as osp\nimport os.path\n", "os", id="twice"),
        pytest.param("import os as system\n", "system", id="their alias"),
        pytest.param("os = 'linux'\n", "os_module", id="taken by a variable"),
        pytest.param("def f():\n    import os\n    return os\n", "os", id="imported elsewhere in a function"),
        pytest.param("def f(os):\n    return os\n", "os_module", id="name of a parameter"),
    ],
)
def test_os_is_spelled_safely(before: str, spelled: str) -> None:
    _, new = changed_lines(program("ms.set_context(device_id=1)", before))
    assert f'ms.set_context(device_id=int({spelled}.getenv("DEVICE_ID", "1")))' in new
    # other `os` of the file are not touched, and an alias is imported under its name
    assert ("import os as os_module" in new) == (spelled == "os_module")


def test_os_shadowed_in_the_function() -> None:
    source = """\
import os
import mindspore as ms
import mindspore.dataset as ds
from mindspore import nn
def main():
    os = "linux"
    ms.set_context(device_id=1)
    train = ds.MnistDataset("/d").batch(8, drop_remainder=True)
    net = nn.Dense(4, 2)
    model = ms.Model(net, nn.MSELoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
    model.train(1, train)
main()
"""
    _, new = changed_lines(source)
    assert '    ms.set_context(device_id=int(os_module.getenv("DEVICE_ID", "1")))' in new
    assert '    if int(os_module.getenv("RANK_SIZE", "1")) > 1:  # started by run_distribute.sh' in new


def test_unreached_call_is_noted() -> None:
    result = run(program("def unused():\n    ms.set_context(device_id=1)\nms.set_context(mode=0)"))
    assert found(result, "MSD101") == [(NOTED, 5), (KEPT, 6)]
    assert "    ms.set_context(device_id=1)\n" in result.output.decode()


@pytest.mark.parametrize(
    ("context", "before"),
    [
        pytest.param("ms.set_context(**cfg)", "cfg = load()\n", id="** that cannot be read"),
        pytest.param("ms.set_context(**cfg)", 'cfg = {"device_id": 1}\n', id="** with an id"),
    ],
)
def test_stars_refused(context: str, before: str) -> None:
    refused(program(context, before), "MSD101", 5, "write them out")


def test_environment_of_the_launcher_is_not_overwritten() -> None:
    gone, new = changed_lines(program("ms.set_context(mode=0)", 'import os\nos.environ["DEVICE_ID"] = "3"\n'))
    assert 'os.environ["DEVICE_ID"] = "3"' in gone
    assert 'os.environ["DEVICE_ID"] = os.getenv("DEVICE_ID", "3")' in new


def test_environment_from_an_argument_is_refused() -> None:
    before = 'import os, sys\nos.environ["RANK_ID"] = sys.argv[1]\n'
    refused(program("ms.set_context(mode=0)", before), "MSD101", 2, "leave it to the launcher")


def test_other_variables_are_left_alone() -> None:
    line = 'os.environ["GLOG_v"] = "3"'
    gone, _ = changed_lines(
        program("ms.set_context(mode=0)", f"import os\n{line}\ncfg = {{}}\ncfg['DEVICE_ID'] = '3'\n")
    )
    assert gone == [DATA.rstrip()]
