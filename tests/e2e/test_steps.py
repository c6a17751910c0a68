"""Hand-written training steps, of every form that public projects show, train the same model after the conversion.

Each file (or folder) in ``steps/`` is a whole training program, in its own words. Starting MindSpore takes longer than
training one of them, so all run one after the other in one process a rank (``steps/runner.py`` says how), once compiled
(GRAPH_MODE) and once op by op (PYNATIVE_MODE): as they are on one card at twice the batch, and as they come out of the
conversion on two ranks. On two ranks they also run with the edits that average the gradients left out, which shows that
the comparison can fail. Each takes 8 steps; nets are smooth, so that the last digit stays the last digit.

``nn.TrainOneStepWithLossScaleCell`` is not among them: its overflow check does not run on CPUs. Nor is weight decay.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e
np = pytest.importorskip("numpy", reason="NumPy comes with MindSpore, which is not installed")

from harness import one_card, ranks  # noqa: E402

from ms_distify import Conversion, convert  # noqa: E402
from ms_distify.launch import render  # noqa: E402

STEPS = Path(__file__).parent / "steps"
BATCH = 4
MODES = {"compiled": "0", "op by op": "1"}
# Programs with this prefix average their gradients as they stand; all others are given reducers.
BY_ITSELF = "itself_"


def _programs() -> dict[str, Path]:
    """Return the file to start for each program, by the program's name."""
    files = {file.stem: file for file in STEPS.glob("*.py") if file.name not in ("given.py", "runner.py")}
    files.update({file.parent.name: file for file in STEPS.glob("*/train.py")})
    return dict(sorted(files.items()))


PROGRAMS = _programs()
REDUCED = [name for name in PROGRAMS if not name.startswith(BY_ITSELF)]
# What MindSpore itself cannot do in one of the modes.
IMPOSSIBLE = {
    ("compiled", "fn_lambda"): "MindSpore compiles no lambda that stands inside a call",
    ("op by op", "fn_mint"): "on CPUs mint.optim.SGD changes no weight op by op (MindSpore 2.10)",
}
# What is refused by name today, though a conversion would be right.
REFUSED_YET: dict[str, str] = {}


def _cases(names: list[str], *, once: bool = False) -> list[Any]:
    """Return modes and programs; with ``once`` each program in one mode, op by op if MindSpore can."""
    cases = []
    for mode in MODES:
        for name in names:
            reason = IMPOSSIBLE.get((mode, name), "")
            if name in REFUSED_YET:
                reason = f"refused: {REFUSED_YET[name]}"
            elif once and _once(name) != mode:
                continue
            marks = [pytest.mark.skip(reason=reason)] if reason else []
            cases.append(pytest.param(mode, name, marks=marks, id=f"{mode}-{name}"))
    return cases


def _once(name: str) -> str:
    return "op by op" if ("op by op", name) not in IMPOSSIBLE else "compiled"


Weights = dict[str, list[Any]]


@dataclasses.dataclass
class Process:
    """What one process recorded: for each program the weights at the start and the end, or why it failed."""

    initial: Weights
    final: Weights
    failed: dict[str, str]

    def weights(self, kind: str, name: str) -> list[Any]:
        key = f"{kind}/{name}"
        assert key not in self.failed, self.failed[key]
        assert self.final.get(key), "the program is refused, or built no optimizer"
        return self.final[key]


@dataclasses.dataclass
class Runs:
    """What was recorded in one mode."""

    one: Process
    rank: tuple[Process, Process]


def _convert(name: str) -> Conversion:
    file = PROGRAMS[name]
    others = {other.resolve() for other in file.parent.glob("*.py")} - {file.resolve()}
    named = frozenset(others) if file.name == "train.py" else frozenset()
    return convert(file.read_bytes(), str(file), file=file, named=named)


def _without_reducers(name: str) -> Conversion:
    """Convert, with the edits left out that build reducers and pass gradients through them."""
    pipeline = importlib.import_module("ms_distify.convert")
    decide = pipeline._decide

    def without(*arguments: Any) -> list[Any]:
        decisions = decide(*arguments)
        return [dataclasses.replace(d, edits=()) if d.finding.code == "MSD301" else d for d in decisions]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "_decide", without)
        return _convert(name)


@pytest.fixture(scope="module")
def conversions() -> dict[str, Conversion]:
    return {name: _convert(name) for name in PROGRAMS}


def _put(folder: Path, name: str, conversion: Conversion | None) -> str:
    """Put a program, converted or as it is, into a folder of its own; return the file to start."""
    folder.mkdir(parents=True)
    shutil.copy(STEPS / "given.py", folder)
    source = PROGRAMS[name]
    if source.name == "train.py":
        shutil.copytree(source.parent, folder, dirs_exist_ok=True)
    target = folder / "train.py"
    target.write_bytes(source.read_bytes() if conversion is None else conversion.output)
    for path, content in conversion.modules if conversion is not None else ():
        (folder / path.name).write_bytes(content)
    return str(target)


def _read(folder: Path, name: str) -> Process:
    process = Process({}, {}, json.loads((folder / f"{name}.json").read_text()))
    with np.load(folder / f"{name}.npz") as arrays:
        for key in arrays.files:
            kind, program, when, _ = key.split("/")
            getattr(process, when).setdefault(f"{kind}/{program}", []).append(arrays[key])
    return process


@pytest.fixture(scope="module")
def runs(
    tmp_path_factory: pytest.TempPathFactory, device: str, conversions: dict[str, Conversion]
) -> Callable[[str], Runs]:
    """Give what was recorded in a mode; everything in that mode runs when it is first asked for."""
    ran: dict[str, Runs | Exception] = {}

    def run(mode: str) -> Runs:
        if mode not in ran:
            try:
                ran[mode] = _run_all(mode, device, tmp_path_factory.mktemp("steps"), conversions)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                ran[mode] = error  # all tests of the mode fail with it; it is not run again for each
        result = ran[mode]
        if isinstance(result, Exception):
            raise result
        return result

    return run


def _run_all(mode: str, device: str, folder: Path, conversions: dict[str, Conversion]) -> Runs:
    """Run all programs on one card and on two ranks."""
    plans: dict[str, list[dict[str, Any]]] = {"one": [], "ranks": []}

    def add(plan: str, kind: str, name: str, batch: int, conversion: Conversion | None) -> None:
        file = _put(folder / plan / kind / name, name, conversion)
        arguments = ["--device", device, "--mode", MODES[mode], "--batch", str(batch)]
        plans[plan].append({"name": f"{kind}/{name}", "file": file, "arguments": arguments})

    for name, conversion in conversions.items():
        if conversion.refused or (mode, name) in IMPOSSIBLE:
            continue
        add("one", "original", name, 2 * BATCH, None)
        add("ranks", "converted", name, BATCH, conversion)
        # What the edits leave out is the same in both modes, and compiling takes long: once is enough.
        if mode == _once(name):
            add("one", "converted", name, 2 * BATCH, conversion)
            if name in REDUCED:
                add("ranks", "without", name, BATCH, _without_reducers(name))
    runner = Path(shutil.copy(STEPS / "runner.py", folder))
    launcher = folder / "run_distribute.sh"
    launcher.write_text(render(runner.name))
    for plan, jobs in plans.items():
        (folder / f"{plan}.json").write_text(json.dumps(jobs))
    one_card(runner, "one.json", "one", timeout=600)
    ranks(launcher, 2, "ranks.json", "ranks", timeout=900)
    return Runs(_read(folder / "one", "one"), (_read(folder / "ranks", "0"), _read(folder / "ranks", "1")))


def _difference(first: list[Any], second: list[Any]) -> float:
    assert len(first) == len(second)
    return max(float(np.max(np.abs(one - other))) for one, other in zip(first, second))


@pytest.mark.parametrize("name", PROGRAMS)
def test_reducers_are_added_where_nothing_averages_and_nowhere_else(
    name: str, conversions: dict[str, Conversion]
) -> None:
    result = conversions[name]
    assert result.refused == (name in REFUSED_YET), [f for f in result.findings if f.status == "refused"]
    if result.refused:
        return
    texts = b"\n".join([result.output, *(content for _, content in result.modules)])
    before = result.original.count(b"DistributedGradReducer(")
    if name in REDUCED:
        assert [f for f in result.findings if (f.code, f.status) == ("MSD301", "changed")]
        assert texts != result.original
    else:
        assert texts.count(b"DistributedGradReducer(") == before
        assert not [f for f in result.findings if (f.code, f.status) == ("MSD301", "changed")]


@pytest.mark.parametrize(("mode", "name"), _cases([*PROGRAMS]))
def test_two_ranks_train_what_one_card_trains_at_twice_the_batch(
    mode: str, name: str, runs: Callable[[str], Runs]
) -> None:
    ran = runs(mode)
    one = ran.one.weights("original", name)
    first, second = (process.weights("converted", name) for process in ran.rank)
    assert _difference(one, ran.one.initial[f"original/{name}"]) > 1e-3, "it did train"
    assert _difference(first, second) == 0
    assert _difference(one, first) < 1e-5


@pytest.mark.parametrize(("mode", "name"), _cases([*PROGRAMS], once=True))
def test_one_card_is_as_before(mode: str, name: str, runs: Callable[[str], Runs]) -> None:
    one = runs(mode).one
    assert _difference(one.weights("original", name), one.weights("converted", name)) == 0


@pytest.mark.parametrize(("mode", "name"), _cases(REDUCED, once=True))
def test_without_the_reducer_edits_they_differ(mode: str, name: str, runs: Callable[[str], Runs]) -> None:
    """What the edits are for; and the proof that the comparison can fail, for each form."""
    ran = runs(mode)
    first, second = (process.weights("without", name) for process in ran.rank)
    assert _difference(first, second) > 1e-4
    assert _difference(ran.one.weights("original", name), first) > 1e-4
