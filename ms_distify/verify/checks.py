"""The checks: what processes recorded to one line each."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from .compare import Distance, batch_loss, courses, equal_ranks
from .outcome import DIFFERS, NOT_COMPARED, NOTED, OK, Check, Curves
from .records import Process

_PARTS = {2: "half", 3: "third", 4: "quarter"}


@dataclass(frozen=True)
class Runs:
    """The processes of a verification; None or empty where a run was not made.

    Attributes:
        ranks: the converted program on N ranks.
        original: the original on one card.
        alone: the converted program on one card.
        again: the original on one card once more; made where ``alone`` differs from it.
        reference: the original on one card at N times the batch, on the rows that the ranks read.
        why_no_reference: why there is none, or how it failed.
        divided: whether the reference's gradients were divided by the number of ranks, for its loss adds up rows.
        strict: whether what cannot be compared counts as a difference.
    """

    ranks: list[Process]
    original: Process | None = None
    alone: Process | None = None
    again: Process | None = None
    reference: Process | None = None
    why_no_reference: str = ""
    divided: bool = False
    strict: bool = False


def check_all(runs: Runs, work: Path, logs: Path) -> tuple[list[Check], Curves]:
    """Make all checks that the runs allow."""
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
    checks += [files(runs.ranks, work, logs), speed(runs)]
    curves = Curves(
        runs.reference.losses() if runs.reference else [],
        [rank.losses() for rank in runs.ranks],
        between,
        [distance.largest for distance in distances],
    )
    return checks, curves


def starts(ranks: list[Process], original: Process | None = None) -> Check:
    """All ranks came up, and ``init`` before what must come behind it."""
    name = "starts"
    for rank in ranks:
        error = rank.first("error")
        if error and not rank.over and not fails_too(original, error["type"]):
            place = f" at {_short(error['at'])}" if error["at"] else ""
            text = f"rank {rank.name} failed in step {rank.steps + 1}{place}: {error['type']}: {error['text']}"
            return Check(name, DIFFERS, text)
    for rank in ranks:
        early = []
        for event in rank.events:
            if event["e"] == "call" and event["name"] == "init":
                break
            if event["e"] == "first" and event["kind"] in ("Cell", "Tensor", "Parameter"):
                early.append(event)
        else:
            return Check(name, DIFFERS, f"rank {rank.name} never called init(): it trains for itself")
        if early:
            event = early[0]
            text = f"the first {event['kind']} ({event['what']}, {_short(event['at'])}) was built before init()"
            return Check(name, DIFFERS, f"{text}; on Ascend init() has to come first")
    text = f"{len(ranks)} ranks came up, init() before the first Cell and Tensor"
    error = next((error for rank in ranks if not rank.over and (error := rank.first("error"))), None)
    if error:
        text += f"; they end with {error['type']} in step {min(rank.steps for rank in ranks) + 1}, as one card does"
    return Check(name, OK, text, len(ranks))


def fails_too(original: Process | None, kind: str) -> bool:
    """Whether the original on one card fails with an error of this kind as well, before the watched steps are over."""
    error = original.first("error") if original is not None and not original.over else None
    return error is not None and error["type"] == kind


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
    from .compare import distance

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


# -- data ---------------------------------------------------------------------------------------------------------


def shards(runs: Runs) -> Check:
    """Each training row goes to one rank, ranks take equally many steps, evaluation data is whole."""
    name = "shards"
    ranks = runs.ranks
    training = [rank.training() for rank in ranks]
    if not all(training):
        return Check(name, NOT_COMPARED, "no step was seen that came after a read of a MindSpore dataset")
    if len({tuple(numbers) for numbers in training}) > 1:
        return Check(name, DIFFERS, "ranks train on different datasets, or take different numbers of epochs")
    said = []
    for number in training[0][:1] + [n for n in training[0][1:] if _other_dataset(ranks[0], n, training[0][0])]:
        text, wrong = _one_training_set(runs, number)
        if wrong:
            return Check(name, DIFFERS, text)
        said.append(text)
    text, wrong = _evaluation(runs)
    if wrong:
        return Check(name, DIFFERS, text)
    return Check(name, OK, "; ".join([*said, text]))


def _other_dataset(process: Process, number: int, first: int) -> bool:
    iterators = process.iterators()
    return bool(iterators[number]["dataset"] != iterators[first]["dataset"])


def _one_training_set(runs: Runs, number: int) -> tuple[str, bool]:
    """Compare what ranks read in the first epoch of an iterator with each other and with one card."""
    epochs = [(rank.epochs(number) or [([], False)])[0] for rank in runs.ranks]
    steps = [len(batches) for batches, _ in epochs]
    whole = all(ended for _, ended in epochs)
    ended = [ended for _, ended in epochs]
    if len(set(steps)) > 1 and (whole or any(e and n < max(steps) for e, n in zip(ended, steps))):
        text = f"ranks have unequal steps in an epoch ({', '.join(map(str, steps))}): the longer ones wait for ever"
        return text, True
    rows = [[row for batch in batches for row in batch] for batches, _ in epochs]
    counts = [Counter(part) for part in rows]
    total = sum(counts, Counter())
    one = _one_card_rows(runs, number)
    twice = sum((total - (one[0] if one else Counter(set(total)))).values())
    padding = len(runs.ranks) - 1
    shape = f"{steps[0]} steps and {len(rows[0])} rows on each rank"
    if one is None or not one[1] or not whole:
        shared = _shared(counts)
        if shared > padding:
            return f"{shared} of the {len(rows[0])} rows of rank 0 were read by another rank too", True
        part = "" if whole else " so far (the rest of the epoch was not read)"
        return f"{shape}{part}, no row on two ranks", False
    known, _ = one
    single = sum(known.values())
    shared = _shared(counts) if max(known.values(), default=1) == 1 else 0
    new = sum(count for row, count in total.items() if row not in known)
    unread = sum(count for row, count in known.items() if row not in total)
    if 2 * new > sum(total.values()) and 2 * unread > single:
        if shared > padding:
            return f"{shared} of the {len(rows[0])} rows of rank 0 were read by another rank too", True
        return f"{shape}, other rows than one card reads (they are drawn anew in each run)", False
    batch = max((len(batch) for batches, _ in epochs for batch in batches), default=1)
    dropped = batch * len(runs.ranks)
    missing = sum((known - total).values())
    if shared > padding or twice > padding + dropped:
        return f"{max(shared, twice)} of {single} training rows were read more often than on one card", True
    if missing >= dropped + padding:
        return f"{missing} of the {single} rows that one card trains on were read by no rank", True
    parts = [f"{shape}, together the {single} rows of one card, no overlap"]
    if missing or new:
        parts.append(f"but for incomplete last batches ({missing} rows that one card takes, {new} that it leaves out)")
    if twice > new:
        parts.append(f"{twice - new} rows twice to make shards equal")
    return "; ".join(parts), False


def _shared(counts: list[Counter[str]]) -> int:
    """Return how many rows of one rank others read too."""
    first = counts[0]
    return sum(sum((first & other).values()) for other in counts[1:])


def _one_card_rows(runs: Runs, number: int) -> tuple[Counter[str], bool] | None:
    if runs.original is None or number not in runs.original.training():
        return None
    batches, ended = (runs.original.epochs(number) or [([], False)])[0]
    return Counter(row for batch in batches for row in batch), ended


def _evaluation(runs: Runs) -> tuple[str, bool]:
    """Compare what is read for evaluation on ranks with each other, and with one card."""
    said = 0
    known = runs.ranks[0].iterators()
    # Of each dataset the first time: later ones are cut short on other steps here and there.
    first = {known[number]["dataset"]: number for number in reversed(runs.ranks[0].evaluation())}
    for number in sorted(first.values()):
        parts = [_first_rows(rank, number) for rank in runs.ranks]
        if not parts[0]:
            continue
        if any(part != parts[0] for part in parts[1:]):
            return "ranks evaluate on different rows: a dataset for evaluation is sharded", True
        if runs.original is not None and number in runs.original.iterators():
            one = _first_rows(runs.original, number)
            if one and Counter(one) != Counter(parts[0]) and set(one) & set(parts[0]):
                return f"ranks evaluate on {len(parts[0])} rows, one card on {len(one)}", True
        said += len(parts[0])
    return (f"evaluation whole: the same {said} rows on every rank" if said else "no evaluation data was read"), False


def _first_rows(process: Process, number: int) -> list[str]:
    epochs = process.epochs(number)
    return [row for batch in epochs[0][0] for row in batch] if epochs else []


# -- mathematics --------------------------------------------------------------------------------------------------


def mathematics(runs: Runs, distances: list[Distance]) -> Check:
    """Ranks train what one card at N times the batch trains."""
    name = "same mathematics"
    if len(distances) < 2:
        status = DIFFERS if runs.strict else NOT_COMPARED
        return Check(name, status, runs.why_no_reference or "no step could be compared with one card")
    if distances[0].apart and distances[0].largest > 1e-6:
        text = f"one card starts with other parameters: {distances[0].where} differs by {distances[0].largest:.3g}"
        return Check(name, DIFFERS, text, distances[0].largest)
    steps = len(distances) - 1
    last = distances[-1]
    what = f"one card at {len(runs.ranks)} times the batch"
    what += f" and a {_PARTS.get(len(runs.ranks), f'{len(runs.ranks)}th')} of the loss" if runs.divided else ""
    for step, distance in enumerate(distances[1:], 1):
        if not math.isfinite(distance.largest):
            if step == 1:
                return Check(name, NOT_COMPARED, "parameters are not finite after step 1, on one card too")
            steps, last = step - 1, distances[step - 1]
            break
        if not distance.equal:
            text = (
                f"differs from {what} from step {step} on: {distance.where} by "
                f"{distance.largest:.3g} ({distance.relative:.1%} of what training has changed)"
            )
            why = _no_mean_of_ranks(runs)
            if why:
                return Check(name, DIFFERS if runs.strict else NOT_COMPARED, f"{why}; {text}", distance.largest)
            return Check(name, DIFFERS, text, distance.largest)
    text = f"largest difference to {what} over {steps} steps: {last.largest:.3g}"
    if not last.tells:
        text = f"training has changed no parameter by more than {last.way:.3g}, which is little more than rounding"
        return Check(name, DIFFERS if runs.strict else NOT_COMPARED, f"{text}; give it more --steps", last.largest)
    if last.halves and last.relative:
        text += f" ({last.relative:.1%} of what training has changed, in numbers of 16 bits)"
    if runs.divided:
        text += "; the loss adds up rows, and ranks average their sums"
    return Check(name, OK, text, last.largest)


def adds_up(runs: Runs, distances: list[Distance]) -> bool:
    """Whether ranks part from one card while the loss adds up its rows, so that they have a part of its gradient."""
    if runs.reference is None or len(distances) < 2 or all(distance.equal for distance in distances[1:]):
        return False
    found = batch_loss(runs.reference, runs.ranks)
    return found is not None and found[0] == "sum"


def _no_mean_of_ranks(runs: Runs) -> str:
    """Say why one card at N times the batch is no measure, where the losses of step 1 tell."""
    found = batch_loss(runs.reference, runs.ranks) if runs.reference else None
    if found is None or found[0] != "other":
        return ""
    _, alone, mean = found
    return (
        f"with equal parameters and rows the loss of one card is {alone:.6g}, the mean of the ranks' {mean:.6g}: rows of a "
        "batch count for each other's loss, or it draws random numbers"
    )


def one_reduction(ranks: list[Process]) -> Check:
    """No gradient passes through two reducers."""
    name = "one reduction"
    for rank in ranks:
        twice = rank.first("reduced twice")
        if twice:
            return Check(name, DIFFERS, f"gradients pass through two reducers in step {twice['step']}")
    own = [event for event in ranks[0].all("reducer") if event["at"]]
    places: dict[tuple[str, int], set[str]] = {}
    for event in own:
        places.setdefault((event["first"], event["count"]), set()).add(event["at"])
    double = next((sorted(at) for at in places.values() if len(at) > 1), None)
    if double:
        text = f"two reducers were built for the same parameters ({', '.join(map(_short, double))})"
        return Check(name, DIFFERS, f"{text}; averaging twice changes nothing but takes twice the time")
    return Check(
        name,
        OK,
        f"reducers in the program: {len(own)}, each for parameters of its own" if own else "train cells average",
    )


def one_card(original: Process, alone: Process, again: Process | None = None) -> Check:
    """Without a launcher the converted program does what the original did, to the bit; if that itself does so twice."""
    check = _one_card(original, alone)
    if check.status == DIFFERS and again is not None and _one_card(original, again).status == DIFFERS:
        other = _one_card(original, again).message.replace("without a launcher ", "")
        text = f"two runs of the original differ from each other as well ({other})"
        return Check(check.name, NOT_COMPARED, text, check.figure)
    return check


def _one_card(original: Process, alone: Process) -> Check:
    from .compare import distance

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


def files(ranks: list[Process], work: Path, logs: Path) -> Check:
    """No file is written by two ranks."""
    writers: dict[str, list[str]] = {}
    for rank in ranks:
        for path in rank.writes():
            if not path.startswith((str(logs), "/tmp/", "/dev/", "/proc/")) or path.startswith(str(work)):
                writers.setdefault(path, []).append(rank.name)
    both = sorted(path for path, names in writers.items() if len(names) > 1)
    if both:
        shown = _inside(both[0], work)
        more = f" and {len(both) - 1} more" if len(both) > 1 else ""
        return Check("files", DIFFERS, f"{shown}{more} written by ranks {', '.join(writers[both[0]])}", len(both))
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
