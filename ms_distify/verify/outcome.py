"""What a verification found: one line for each check, the curves behind them, and the verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

OK, DIFFERS, NOT_COMPARED, NOTED = "ok", "differs", "not compared", "noted"
PROVED, DIFFERENT, COULD_NOT_RUN = "proved", "differs", "could not run"

# The checks in the order in which they are shown; the first that differs names the result.
CHECKS = {
    "starts": "all ranks come up, init() before the first Cell and Tensor, a device for each",
    "equal start": "ranks begin with equal parameters",
    "shards": "each training row on one rank, equally many steps, evaluation data whole",
    "equal course": "ranks keep equal parameters after every step",
    "same mathematics": "the parameters of one card at N times the batch",
    "one reduction": "each gradient is averaged once",
    "one card": "the converted program without a launcher does what the original did",
    "files": "no file is written by two ranks",
    "speed": "time per step and rows per second",
}


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: a key of ``CHECKS``.
        status: "ok", "differs", "not compared" (the message says why) or "noted" (a figure without a judgement).
        message: one line: the figure and what it means; where it differs, which parameter, row or file, and the first
            step.
        figure: the number the check is about, where there is one.
    """

    name: str
    status: str
    message: str
    figure: float | None = None


@dataclass(frozen=True)
class Curves:
    """The course of the runs, step by step (the first entry is step 1).

    Attributes:
        one_card: loss of one card at N times the batch; empty where no loss was seen.
        ranks: loss of each rank, by rank; empty lists where no loss was seen.
        between_ranks: largest difference of any parameter between ranks, before step 1 and after every step.
        to_one_card: largest difference of any parameter to one card at N times the batch, likewise.
    """

    one_card: list[float] = field(default_factory=list)
    ranks: list[list[float]] = field(default_factory=list)
    between_ranks: list[float] = field(default_factory=list)
    to_one_card: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """What a verification found.

    Attributes:
        program: the program as the user named it.
        converted: what it was compared with: a file, or "converted in memory".
        verdict: "proved", "differs" or "could not run".
        why: for the last two: which check, or what is missing and what to give it.
        ranks: how many ranks were started.
        steps: how many training steps were compared.
        device: the device the programs ran on.
        changes: what was changed in the runs to make them comparable ("dropout is off").
        checks: the checks, in the order of ``CHECKS``.
        curves: loss and differences by step.
        original: text of the single-card program; empty where there was none.
        output: text of the converted one.
        logs: the folder with what the processes printed, where it was kept.
    """

    program: str
    converted: str
    verdict: str
    why: str
    ranks: int
    steps: int
    device: str
    changes: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    curves: Curves = field(default_factory=Curves)
    original: str = ""
    output: str = ""
    logs: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data for ``--json``, without the programs' texts."""
        data = asdict(self)
        del data["original"], data["output"]
        return data
