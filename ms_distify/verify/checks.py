"""The checks: what processes recorded to one line each."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from .compare import Distance, courses, distance, equal_ranks
from .mathematics import mathematics
from .outcome import DIFFERS, NOT_COMPARED, NOTED, OK, Check, Curves
from .records import Event, Process
from .rows import shards
from .runs import Runs

# Without these nothing is proved.
ESSENTIAL = ("shards", "equal course")


def check_all(runs: Runs, work: Path, logs: Path, changed: Collection[str] = ()) -> tuple[list[Check], Curves]:
    """Make all checks that the runs allow.

    Args:
        runs: the processes.
        work: the working folder of the ranks.
        logs: the folder of what is recorded.
        changed: the files of the working folder that came or changed while ranks ran, whoever wrote them.
    """
    between, course = equal_ranks(runs.ranks)
    distances = courses(runs.reference, runs.ranks[0]) if runs.reference else []
    checks = [
        starts(runs.ranks, runs.original),
        equal_start(runs.ranks),
        shards(runs),
        course,
        mathematics(runs, distances),
        one_reduction(runs.ranks),
    ]
    if runs.original is not None and runs.alone is not None:
        checks.append(one_card(runs.original, runs.alone, runs.again))
    checks += [files(runs.ranks, work, logs, changed), speed(runs)]
    curves = Curves(
        runs.reference.losses() if runs.reference else [],
        [rank.losses() for rank in runs.ranks],
        between,
        [distance.largest for distance in distances],
    )
    return [_strictly(check, runs) for check in checks] if runs.strict else checks, curves


def _strictly(check: Check, runs: Runs) -> Check:
    """Count what was not compared as a difference, where it could have been."""
    left = check.status == NOT_COMPARED or (check.status == NOTED and check.name == "same mathematics")
    possible = check.name != "speed" and (check.name != "same mathematics" or runs.original is not None)
    return replace(check, status=DIFFERS) if left and possible else check


def starts(ranks: list[Process], original: Process | None = None) -> Check:
    """All ranks came up, and ``init`` before what must come behind it."""
    name = "starts"
    for rank in ranks:
        failed = rank.first("error")
        if failed and not rank.over and not fails_too(original, rank):
            place = f" at {_short(failed['at'])}" if failed["at"] else ""
            text = f"rank {rank.name} failed in step {rank.steps + 1}{place}: {failed['type']}: {failed['text']}"
            return Check(name, DIFFERS, text)
    for rank in ranks:
        built: list[Event] = []
        for event in rank.events:
            if event["e"] == "init":
                break
            if event["e"] == "first" and event["kind"] in ("Cell", "Tensor", "Parameter"):
                built.append(event)
        else:
            return Check(name, DIFFERS, f"rank {rank.name} never called init(): it trains for itself")
        if built:
            place = f"{built[0]['what']}, {_short(built[0]['at'])}"
            text = f"the first {built[0]['kind']} ({place}) was built before init()"
            return Check(name, DIFFERS, f"{text}; on Ascend init() has to come first")
    devices = [(said["target"], said["id"]) for rank in ranks if (said := rank.first("device"))]
    shared = next((device for device in devices if device[0] != "CPU" and devices.count(device) > 1), None)
    if shared:
        return Check(name, DIFFERS, f"{devices.count(shared)} ranks use {shared[0]} device {shared[1]}")
    text = f"{len(ranks)} ranks came up, init() before the first Cell and Tensor"
    early_end = next((error for rank in ranks if not rank.over and (error := rank.first("error"))), None)
    if early_end:
        text += f"; they end with {early_end['type']} in step {min(rank.steps for rank in ranks) + 1}, as one card does"
    return Check(name, OK, text, len(ranks))


def fails_too(original: Process | None, rank: Process) -> bool:
    """Whether the original on one card fails as a rank does before the watched steps are over.

    Numbers in what they say may differ, and so do their working folders.
    """
    own = _failure(original) if original is not None and not original.over else None
    return own is not None and own == _failure(rank)


def _failure(process: Process) -> tuple[str, str] | None:
    error = process.first("error")
    if error is None:
        return None
    return error["type"], re.sub(r"\d+", "", error["text"].replace(str(process.folder.parent), ""))


def equal_start(ranks: list[Process]) -> Check:
    """All ranks begin with the same parameters, or have them after the first step."""
    name = "equal start"
    before = _between(ranks, 0)
    if before is None:
        return Check(name, NOT_COMPARED, "no parameters of an optimizer were seen before a step")
    if not before.apart:
        return Check(name, OK, f"largest difference of {before.count} parameters between ranks: 0", 0.0)
    after = _between(ranks, 1)
    if after is not None and not after.apart:
        text = (
            f"seeds differ (by up to {before.largest:.3g}), and rank 0's parameters were broadcast: equal after step 1"
        )
        return Check(name, OK, text, before.largest)
    text = f"ranks start with other parameters: {before.where} differs by {before.largest:.3g}"
    return Check(name, DIFFERS, text, before.largest)


def _between(ranks: list[Process], step: int) -> Distance | None:
    first = ranks[0].snapshot(step)
    found: Distance | None = None
    for rank in ranks[1:]:
        other = rank.snapshot(step)
        if first is None or other is None:
            return None
        this = distance(first, other, None, ranks[0].parameters())
        if found is None or this.largest > found.largest or (this.apart and not found.apart):
            found = this
    return found


def one_reduction(ranks: list[Process]) -> Check:
    """No gradient passes through two reducers."""
    name = "one reduction"
    for rank in ranks:
        twice = rank.first("reduced twice")
        if twice:
            return Check(name, DIFFERS, f"gradients pass through two reducers in step {twice['step']}")
    own = [event for event in ranks[0].all("reducer") if event["at"]]
    places: dict[int, set[str]] = {}
    for event in own:
        places.setdefault(event["first"], set()).add(event["at"])
    double = next((sorted(at) for at in places.values() if len(at) > 1), None)
    if double:
        text = f"two reducers were built for the same parameters ({', '.join(map(_short, double))})"
        return Check(name, NOTED, f"{text}; if both are used, gradients are averaged twice for nothing")
    said = f"reducers in the program: {len(own)}, each for parameters of its own" if own else "train cells average"
    return Check(name, OK, said)


def one_card(original: Process, alone: Process, again: Process | None = None) -> Check:
    """Without a launcher the converted program does what the original did, to the bit; if that itself does so twice."""
    check = _one_card(original, alone)
    if check.status == DIFFERS and again is not None and _one_card(original, again).status == DIFFERS:
        other = _one_card(original, again).message.replace("without a launcher ", "")
        text = f"two runs of the original differ from each other as well ({other})"
        return Check(check.name, NOT_COMPARED, text, check.figure)
    return check


def _one_card(original: Process, alone: Process) -> Check:
    name = "one card"
    for before, after in ((original, alone), (alone, original)):
        error = after.first("error")
        if error and not after.over and not before.first("error"):
            return Check(name, DIFFERS, f"fails without a launcher: {error['type']}: {error['text']}")
    if original.steps != alone.steps:
        return Check(name, DIFFERS, f"{alone.steps} steps instead of {original.steps}")
    for step in range(original.steps + 1):
        first, second = original.snapshot(step), alone.snapshot(step)
        if first is None or second is None:
            continue
        apart = distance(first, second, None, original.parameters())
        if apart.apart:
            text = f"without a launcher {apart.where} differs by {apart.largest:.3g} after step {step}"
            return Check(name, DIFFERS, text, apart.largest)
    return Check(name, OK, f"equal to the original to the bit over {original.steps} steps", 0.0)


# -- files and speed ----------------------------------------------------------------------------------------------


def files(ranks: list[Process], work: Path, logs: Path, changed: Collection[str] = ()) -> Check:
    """No file is written by two ranks, and of all that are in the working folder it is known who wrote them."""
    writers: dict[str, list[str]] = {}
    for rank in ranks:
        for path in rank.writes():
            if not path.startswith((f"{logs}/", "/dev/", "/proc/")):
                writers.setdefault(path, []).append(rank.name)
    both = sorted(path for path, names in writers.items() if len(names) > 1)
    if both:
        shown = _inside(both[0], work)
        more = f" and {len(both) - 1} more" if len(both) > 1 else ""
        return Check("files", DIFFERS, f"{shown}{more} written by ranks {', '.join(writers[both[0]])}", len(both))
    # A folder that is named after a rank, as MindSpore's profiler makes them, is its own.
    own = {f"rank_{rank.name}" for rank in ranks}
    others = sorted(path for path in set(changed) - set(writers) if not own & set(Path(_inside(path, work)).parts[:-1]))
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        text = f"{_inside(others[0], work)}{more} written, and not by the Python of a rank: by how many cannot be seen"
        return Check("files", NOT_COMPARED, text, len(others))
    return Check("files", OK, f"{len(writers)} files written, none by two ranks", 0)


def speed(runs: Runs) -> Check:
    """Time per step and rows per second, one card and N ranks, as a ratio."""
    many = _pace(runs.ranks[0])
    if many is None:
        return Check("speed", NOT_COMPARED, "too few steps to tell")
    seconds, rows = many
    rows *= len(runs.ranks)
    one = _pace(runs.original) if runs.original else None
    if one is None:
        return Check("speed", NOTED, f"{seconds:.3g} s a step, {rows / seconds:.4g} rows/s on {len(runs.ranks)} ranks")
    ratio = (rows / seconds) / (one[1] / one[0])
    text = (
        f"{len(runs.ranks)} ranks {seconds:.3g} s a step, {rows / seconds:.4g} rows/s; one card {one[0]:.3g} s, "
        f"{one[1] / one[0]:.4g} rows/s: {ratio:.2f} times"
    )
    return Check("speed", NOTED, text, ratio)


def _pace(process: Process) -> tuple[float, float] | None:
    """Return the median seconds of a step, without those that compile, and its rows."""
    steps = list(process.all("step"))[2:]
    if not steps:
        return None
    sizes = {(event["i"], event["k"]): len(event["rows"]) for event in process.all("read")}
    times = sorted(event["seconds"] for event in steps)
    rows = [sum(sizes.get((i, k), 0) for i, k in event["reads"]) for event in steps]
    return max(times[len(times) // 2], 1e-9), max(rows)


def _inside(path: str, work: Path) -> str:
    return path[len(str(work)) + 1 :] if path.startswith(str(work)) else path


def _short(place: str) -> str:
    return place.rpartition("/")[2]
