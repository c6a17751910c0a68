"""MSD107: one place for the start-up, on the way to every training."""

from __future__ import annotations

import pytest
from support import HEAD, TRAINING, converted, found, refused, run

DATA = 'train = ds.MnistDataset("/d").batch(8, drop_remainder=True)\n'
CONTEXT = "ms.set_context(mode=0)\n"
BODY = DATA + TRAINING


def indent(text: str) -> str:
    return "".join("    " + line for line in text.splitlines(keepends=True))


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(HEAD + CONTEXT + BODY, id="module"),
        pytest.param(HEAD + CONTEXT + BODY + TRAINING, id="two trainings behind one context"),
        pytest.param(HEAD + "if ds:\n" + indent(CONTEXT + BODY), id="context and training in one branch"),
        pytest.param(HEAD + "for lr in (0.1, 0.2):\n" + indent(BODY), id="trainings in a loop, no context"),
        pytest.param(HEAD + "def main():\n" + indent(BODY) + "main()\nmain()\n", id="two calls, no context"),
        pytest.param(
            HEAD + "def setup(t):\n    ms.set_context(device_target=t)\nsetup('CPU')\nsetup('GPU')\n" + BODY,
            id="the context set twice before anything is built",
        ),
    ],
)
def test_has_a_place(source: str) -> None:
    assert found(run(source), "MSD107") == []
    output = converted(source)
    assert output.count("    init()\n") == 1
    assert output.index("init()\n") < output.index("model.train(") or "def main" in output


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(HEAD + "for target in ('CPU', 'GPU'):\n" + indent(CONTEXT + BODY), id="context in a loop"),
        pytest.param(
            HEAD + "def main():\n" + indent(CONTEXT + BODY) + "for i in range(3):\n    main()\n", id="called in a loop"
        ),
        pytest.param(HEAD + "def main():\n" + indent(CONTEXT + BODY) + "main()\nmain()\n", id="called twice"),
        pytest.param(
            HEAD
            + "def a():\n"
            + indent(CONTEXT + BODY)
            + "def b():\n"
            + indent(CONTEXT + BODY)
            + "if ds:\n    a()\nelse:\n    b()\n",
            id="a context for each of two trainings",
        ),
        pytest.param(HEAD + "ms.set_context(mode=0); " + BODY, id="context and dataset on one line"),
    ],
)
def test_many_contexts_have_one_start_up_before_them(source: str) -> None:
    output = converted(source)
    assert output.count("    init()\n") == 1
    lines = output.splitlines()
    start = lines.index("    init()")
    assert lines[start - 1].startswith('if int(os.getenv("RANK_SIZE"'), "at module level, in no loop or function"
    started = next(
        i for i, line in enumerate(lines) if line.startswith(("for ", "main()", "if ds", "ms.set_context(mode"))
    )
    assert start < started


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        pytest.param(
            HEAD + "for target in ('CPU', 'GPU'):\n    ms.set_context(device_target=target)\n" + indent(BODY),
            5,
            "inside a loop",
            id="another device each time",
        ),
        pytest.param(
            HEAD + "from mindspore.communication import init\nfor i in range(2):\n    init()\n" + BODY,
            6,
            "init() runs in a loop",
            id="init in a loop",
        ),
    ],
)
def test_refused(source: str, line: int, message: str) -> None:
    refused(source, "MSD107", line, message)
