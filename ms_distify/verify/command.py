"""The way of a verification: copies, runs, checks, verdict."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..convert import InputError, convert
from ..exits import Stop, reason
from ..launch import render
from ..settings import Settings
from .checks import ESSENTIAL, check_all, fails_too, one_card
from .compare import courses
from .mathematics import SUM, apart_on_equal_rows, mathematics, questioned, same_loss, to_measure
from .outcome import COULD_NOT_RUN, DIFFERENT, DIFFERS, NOT_COMPARED, PROVED, Curves, Outcome
from .processes import Ended, Running, ended_by_signals
from .records import Process, read_process
from .runs import Runs
from .why import CouldNotRun, must_have_trained, why_it_ended
from .work import link_neighbours, make_copy, project_root, state

_LAUNCHER = "run_distribute_verify.sh"


@dataclass(frozen=True)
class Wish:
    """What to verify, and how.

    Attributes:
        script: the single-card program; with ``only`` the distributed one.
        converted: the distributed program to compare it with; None to convert it here.
        only: whether there is no single-card program.
        arguments: the arguments of the program.
        ranks: how many ranks.
        steps: how many training steps are watched.
        timeout: seconds that one run may take.
        device: "CPU", "Ascend" or "GPU".
        python: the interpreter that has MindSpore.
        strict: compare dropout, batch normalisation and augmentation as they are, and count what cannot be compared as a
            difference.
        fake_data: make up data for dataset classes whose files are not there.
    """

    script: Path
    converted: Path | None = None
    only: bool = False
    arguments: tuple[str, ...] = ()
    ranks: int = 2
    steps: int = 20
    timeout: float = 600.0
    device: str = "CPU"
    python: str = sys.executable
    strict: bool = False
    fake_data: bool = False


def verify(wish: Wish, settings: Settings, say: Callable[[str], None]) -> Outcome:
    """Run the original on one card and the converted program on N ranks, and compare them.

    Args:
        wish: what to verify.
        settings: the seed of the conversion.
        say: takes one line for each thing that is begun.

    Raises:
        Stop: there is nothing to run: the input cannot be read, or MindSpore is not there.
    """
    _need_mindspore(wish.python)
    program = _Program.read(wish, settings)
    base = Path(tempfile.mkdtemp(prefix="ms-distify-verify-")).resolve()
    keep = False
    try:
        with ended_by_signals():
            outcome = _Verification(wish, settings, program, base, say).run()
        keep = outcome.verdict != PROVED
        return replace(outcome, logs=str(base)) if keep else outcome
    except OSError as error:
        raise Stop(f"{error.filename or base}: {reason(error)}") from None
    finally:
        if not keep:
            shutil.rmtree(base, ignore_errors=True)


def _need_mindspore(python: str) -> None:
    test = "import importlib.util, sys; sys.exit(importlib.util.find_spec('mindspore') is None)"
    try:
        found = subprocess.run([python, "-c", test], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        raise Stop(f"{python}: cannot be run; --python names the interpreter that has MindSpore") from None
    if not found:
        raise Stop(
            f"MindSpore is not installed for {python}; pip install 'ms-distify[cpu]', or name another "
            "interpreter with --python"
        )


@dataclass(frozen=True)
class _Program:
    """The files of the program.

    Attributes:
        root: the folder that is copied.
        script: the single-card program.
        distributed: what runs on N ranks, by path: new contents of files of the project.
        entry: the file that is started on N ranks.
    """

    root: Path
    script: Path
    distributed: dict[Path, bytes]
    entry: Path

    @property
    def deals_evaluations(self) -> bool:
        """Whether the distributed program was converted with ``--shard-eval``."""
        texts = [*self.distributed.values(), self.entry.read_bytes()]
        return any(b"def rank_part(" in text or b"def rank_batches(" in text for text in texts)

    @staticmethod
    def read(wish: Wish, settings: Settings) -> _Program:
        """Read the program, and convert it where no converted one is given.

        Raises:
            Stop: it cannot be read, or is refused.
        """
        script = wish.script.resolve()
        source = _bytes(wish.script)
        try:
            result = convert(source, str(wish.script), settings, file=script, recheck=False)
            files = [path for path in result.files if path.suffix == ".py"]
            if wish.converted is None and not wish.only:
                # In a copy all files that the program is made of may be changed.
                named = frozenset(path.resolve() for path in files)
                result = convert(source, str(wish.script), settings, file=script, named=named, recheck=False)
        except InputError as error:
            raise Stop(str(error)) from None
        if wish.only:
            return _Program(project_root(script, files), script, {}, script)
        if wish.converted is not None:
            entry = wish.converted.resolve()
            _bytes(wish.converted)
            return _Program(project_root(script, [*files, entry]), script, {}, entry)
        if result.refused:
            lines = [f"{f.path}:{f.line}: {f.code} {f.message}" for f in result.findings if f.status == "refused"]
            raise Stop("the program is refused, so there is nothing to verify:\n  " + "\n  ".join(lines), 3)
        changed = {Path(path).resolve(): content for path, content in result.modules}
        changed[script] = result.output
        return _Program(project_root(script, files), script, changed, script)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Stop(f"{path}: {reason(error)}") from None


class _Verification:
    def __init__(
        self, wish: Wish, settings: Settings, program: _Program, base: Path, say: Callable[[str], None]
    ) -> None:
        self.wish, self.settings, self.program, self.base, self.say = wish, settings, program, base, say
        self.running: list[Running] = []
        self.before: dict[str, dict[str, tuple[int, int]]] = {}  # by run, the files of its folder before it began
        self.began = time.time()

    # -- the runs -------------------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Make the runs, one after the other where one needs another, and the checks."""
        try:
            return self._run()
        except CouldNotRun as error:
            return self._outcome(COULD_NOT_RUN, str(error))
        finally:
            for running in self.running:
                running.stop()

    def _run(self) -> Outcome:
        original: Process | None = None
        if not self.wish.only:
            self.say("running the original on one card")
            ended = self._start("original", converted=False).wait(self.wish.timeout)
            original = self._process("original", "one")
            must_have_trained(original, ended, "the original on one card")
        self.say(f"running the converted program on {self.wish.ranks} ranks")
        ended = self._start("ranks", converted=True, ranks=self.wish.ranks).wait(self.wish.timeout)
        ranks = [self._process("ranks", str(rank)) for rank in range(self.wish.ranks)]
        if not all(rank.events for rank in ranks):
            raise CouldNotRun(why_it_ended(ended, f"{self.wish.ranks} ranks", None))
        alone: Running | None = None
        if not self.wish.only:
            # Beside the next run: neither of the two is timed.
            self.say("running the converted program on one card")
            alone = self._start("alone", converted=True)
        reference, why = self._reference("reference", original, ranks)
        if alone is not None:
            alone.wait(self.wish.timeout)
        one = self._process("alone", "one") if alone else None
        runs = Runs(
            ranks, original, one, self._again(original, one), reference, why, dealt=self.program.deals_evaluations,
            strict=self.wish.strict,
        )  # fmt: skip
        loss = questioned(runs)
        if loss:
            runs = replace(runs, own_rows=self._reference("own rows", original, ranks)[0])
            if not same_loss(runs):
                runs = replace(runs, own_again=self._reference("own rows again", original, ranks)[0])
        if loss == SUM and same_loss(runs):
            reference, why = self._reference("divided", original, ranks, divided=True)
            runs = replace(runs, reference=reference, why_no_reference=why, divided=True)
        if to_measure(runs):
            shuffled, why = self._reference("shuffled", original, ranks, divided=runs.divided)
            runs = replace(runs, shuffled=None if why else shuffled)
        runs = self._on_equal_rows(runs)
        if not any(rank.steps for rank in ranks):
            self._must_blame_ranks(original, ranks, ended)
        work = self.base / "ranks" / "work"
        changed = [path for path, seen in state(work).items() if self.before["ranks"].get(path) != seen]
        checks, curves = check_all(runs, work, self.base / "ranks" / "record", changed)
        wrong = [check for check in checks if check.status == DIFFERS]
        left = next((check for check in checks if check.name in ESSENTIAL and check.status == NOT_COMPARED), None)
        if left is not None and not wrong:
            raise CouldNotRun(f"{left.name}: {left.message}")
        changes = tuple(
            dict.fromkeys(
                event["what"] for process in [*ranks, *filter(None, [original])] for event in process.all("changed")
            )
        )
        verdict, why = (DIFFERENT, f"{wrong[0].name}: {wrong[0].message}") if wrong else (PROVED, "")
        return replace(
            self._outcome(verdict, why),
            steps=min(rank.steps for rank in ranks),
            changes=changes,
            checks=tuple(checks),
            curves=curves,
        )

    def _on_equal_rows(self, runs: Runs) -> Runs:
        """Run ranks and one card on the rows of rank 0, where one card at N times the batch is no measure."""
        if runs.original is None or runs.reference is None or runs.own_again is not None:
            return runs
        if mathematics(runs, courses(runs.reference, runs.ranks[0])).status != NOT_COMPARED:
            return runs
        one, _ = self._reference("rows of rank 0", runs.original, runs.ranks)
        if one is None or not one.steps:
            return runs  # otherwise the steps that it took can be compared
        self.say(f"running the converted program on {self.wish.ranks} ranks that all read the rows of rank 0")
        replay = self._replay(runs.ranks, 1)
        self._start("equal rows", converted=True, ranks=self.wish.ranks, replay=replay).wait(self.wish.timeout)
        runs = replace(runs, alike_one=one, alike=self._process("equal rows", "0"))
        if apart_on_equal_rows(runs) is None:
            return runs
        return replace(runs, alike_again=self._reference("rows of rank 0 again", runs.original, runs.ranks)[0])

    def _replay(self, ranks: list[Process], many: int, *, shuffled: bool = False) -> dict[str, Any]:
        """Return what makes a run read what the first of the ranks read."""
        folder = str(self.base / "ranks" / "record")
        return {"folder": folder, "ranks": many, "iterators": ranks[0].training(), "shuffled": shuffled}

    def _again(self, original: Process | None, alone: Process | None) -> Process | None:
        """Run the original once more where the converted program differs on one card, to see whether it repeats itself."""
        if original is None or alone is None or one_card(original, alone).status != DIFFERS:
            return None
        self.say("running the original on one card once more")
        self._start("again", converted=False).wait(self.wish.timeout)
        return self._process("again", "one")

    def _must_blame_ranks(self, original: Process | None, ranks: list[Process], ended: Ended) -> None:
        """Give up where ranks took no step and the program, or its data, is the reason rather than the conversion."""
        many = f"{self.wish.ranks} ranks"
        failed = next((rank for rank in ranks if rank.first("error")), None)
        small = "made-up data sets are small: it may need a smaller batch" if self.wish.fake_data else ""
        if failed is not None:
            if original is not None and fails_too(original, failed):
                why = why_it_ended(ended, f"the original on one card fails too, in step {original.steps + 1}", original)
                raise CouldNotRun("; ".join(filter(None, [why, small])))
            return
        if original is not None and any(rank.first("iterator") and not rank.first("read") for rank in ranks):
            more = small or "give it more data or a smaller batch"
            raise CouldNotRun(f"{many}: a rank's part of the data does not fill one batch; {more}")
        raise CouldNotRun(why_it_ended(ended, many, ranks[0]))

    def _reference(
        self, name: str, original: Process | None, ranks: list[Process], *, divided: bool = False
    ) -> tuple[Process | None, str]:
        """Run one card on the rows of all ranks, in another order ("shuffled"), or on those of rank 0 ("own rows": one step).

        Args:
            name: which of these.
            original: the original on one card.
            ranks: the converted program on ranks.
            divided: whether it gets a part of the gradients, where they are of sums.
        """
        if original is None:
            return None, "there is no single-card program to compare with (--only)"
        if self.wish.converted is None and self.settings.scale_lr != "none":
            return (
                None,
                "pyproject.toml asks for another learning rate on N ranks (scale_lr), so they train differently",
            )
        training = ranks[0].training()
        if not training or ranks[0].steps == 0:
            return None, "no step was seen that came after a read of a MindSpore dataset"
        known = original.iterators()
        many, what = self.wish.ranks, f"one card at {self.wish.ranks} times the batch"
        if "own rows" in name or "rank 0" in name:
            many, what = 1, "one card on the rows of rank 0" + " once more" * name.endswith("again")
        # Where ranks divide the batch of one card, all of theirs together are no larger than that.
        grows = many > 1 and not (self.wish.converted is None and self.settings.global_batch == "keep")
        enlarge = sorted({number for i in original.training() for number in known[i]["batches"][:1]}) if grows else []
        said = ", its gradients divided, for the loss adds up rows" * divided
        said += ", rows in another order, to see what rounding does" * (name == "shuffled")
        self.say(f"running the original on {what}{said}")
        more: dict[str, Any] = {
            "replay": self._replay(ranks, many, shuffled=name == "shuffled"),
            "enlarge": enlarge,
            "divide": many if divided else 1,
        }
        if "own rows" in name:
            more["steps"] = 1
        ended = self._start(name, converted=False, **more).wait(self.wish.timeout)
        process = self._process(name, "one")
        if not process.over and process.steps < ranks[0].steps:
            error = process.first("error")
            if error or not process.steps:
                return process, f"{what} cannot be run: {why_it_ended(ended, '', process)}"
        return process, ""

    def _start(self, name: str, *, converted: bool, ranks: int = 0, **more: Any) -> Running:
        """Start a run in a working copy of its own."""
        work = self.base / name / "work"
        make_copy(self.program.root, work)
        beside = link_neighbours(self.program.root, work, self.wish.arguments)
        entry = self.program.script
        if converted:
            entry = self.program.entry
            for path, content in self.program.distributed.items():
                place = work / path.relative_to(self.program.root)
                if place.is_symlink():
                    place.unlink()
                place.write_bytes(content)
        script = work / entry.relative_to(self.program.root)
        record = self.base / name / "record"
        command = [self.wish.python, script.name, *self.wish.arguments]
        if ranks:
            launcher = script.parent / _LAUNCHER
            launcher.write_text(render(script.name, default_ranks=ranks), encoding="utf-8", errors="surrogateescape")
            command = ["bash", launcher.name, "-n", str(ranks), "--log-dir", str(record / "logs")]
            command += ["--no-device-check"] if self.wish.device == "CPU" else []
            command += ["--", *self.wish.arguments]
        config = {
            "record": str(record),
            "ranks": ranks,
            "steps": self.wish.steps,
            "factor": self.wish.ranks,
            "enlarge": [],
            "divide": 1,
            "replay": None,
            "keep_batches": name == "ranks" and not self.wish.only,
            "drain": name in ("ranks", "original"),
            "as_is": self.wish.strict,
            "made_up": str(self.base / "made_up") if self.wish.fake_data else "",
            "device": self.wish.device,
            # Ranks have to be made equal by the program itself.
            "seed": None if ranks else self.settings.seed,
            "work": str(work),
            "protect": [str(self.program.root), *map(str, beside)],
            "began": self.began,
            **more,
        }
        self.before[name] = state(work)
        running = Running(command, script.parent, config, self.wish.python)
        self.running.append(running)
        return running

    def _process(self, run: str, name: str) -> Process:
        return read_process(self.base / run / "record", name)

    def _outcome(self, verdict: str, why: str) -> Outcome:
        wish = self.wish
        converted = str(wish.converted) if wish.converted else str(wish.script) if wish.only else "converted in memory"
        original = "" if wish.only else _text(self.program.script)
        output = self.program.distributed.get(self.program.script)
        return Outcome(
            str(wish.script), converted, verdict, why, wish.ranks, 0, wish.device, (), (), Curves(), original,
            output.decode("utf-8", "replace") if output is not None else _text(self.program.entry),
        )  # fmt: skip


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")
