"""Which rows ranks read: each training row on one rank, equally many steps, evaluation data whole."""

from __future__ import annotations

from collections import Counter

from .outcome import DIFFERS, NOT_COMPARED, OK, Check
from .records import Process
from .runs import Runs

_NAME = "shards"
Epoch = tuple[list[list[str]], bool]


def shards(runs: Runs) -> Check:
    """Each training row goes to one rank, ranks take equally many steps, evaluation data is whole."""
    ranks = runs.ranks
    training = [rank.training() for rank in ranks]
    if not all(training):
        return Check(_NAME, NOT_COMPARED, "no step was seen that came after a read of a MindSpore dataset")
    if len({tuple(numbers) for numbers in training}) > 1:
        return Check(_NAME, DIFFERS, "ranks train on different datasets, or take different numbers of epochs")
    known = ranks[0].iterators()
    # Of each dataset the first time: later epochs may be cut short.
    first = {known[number]["dataset"]: number for number in reversed(training[0])}
    found = [_training_set(runs, number) for number in sorted(first.values())]
    found.append(_evaluation(runs))
    for status in (DIFFERS, NOT_COMPARED):
        wrong = next((check for check in found if check.status == status), None)
        if wrong is not None:
            return wrong
    return Check(_NAME, OK, "; ".join(check.message for check in found))


def _training_set(runs: Runs, number: int) -> Check:
    """Compare what ranks read in the first epoch of an iterator with each other and with one card."""
    epochs: list[Epoch] = [(rank.epochs(number) or [([], False)])[0] for rank in runs.ranks]
    steps = [len(batches) for batches, _ in epochs]
    whole = all(ended for _, ended in epochs)
    if len(set(steps)) > 1 and (whole or any(ended and n < max(steps) for n, (_, ended) in zip(steps, epochs))):
        counts = ", ".join(map(str, steps))
        return Check(_NAME, DIFFERS, f"ranks have unequal steps in an epoch ({counts}): the longer ones wait for ever")
    rows = [Counter(row for batch in batches for row in batch) for batches, _ in epochs]
    shape = f"{steps[0]} steps and {sum(rows[0].values())} rows on each rank"
    one = _of_one_card(runs, number)
    if one is None or not one[1] or not whole:
        part = "" if whole else " so far (the rest of the epoch was not read)"
        return _apart(rows, f"{shape}{part}")
    return _against_one_card(rows, one[0], [batches for batches, _ in epochs], shape)


def _against_one_card(
    rows: list[Counter[str]], single: list[list[str]], many: list[list[list[str]]], shape: str
) -> Check:
    """Judge what ranks read more, and what less, than one card does.

    Args:
        rows: the rows of each rank.
        single: the batches of one card.
        many: those of each rank.
        shape: what is said of them in any case.
    """
    known = Counter(row for batch in single for row in batch)
    all_ranks = sum(rows, Counter())
    total = sum(known.values())
    more, unread = sum((all_ranks - known).values()), sum((known - all_ranks).values())
    strangers = sum(count for row, count in all_ranks.items() if row not in known)
    never_read = sum(count for row, count in known.items() if row not in all_ranks)
    if 2 * strangers > sum(all_ranks.values()) and 2 * never_read > total:
        return _apart(rows, f"{shape}, other rows than one card reads (they are drawn anew in each run)")
    padding = len(rows) - 1  # shards are made equal by rows of the beginning
    overlap = _shared(rows) if max(known.values(), default=1) == 1 else 0
    twice = max(overlap, more - strangers)
    if twice > padding:
        return Check(_NAME, DIFFERS, f"{twice} of {total} training rows were read more often than on one card")
    # One card leaves out less than one of its batches, and nothing where its last one is smaller than the others.
    sizes = [len(batch) for batch in single]
    left_out = max(sizes) - 1 if sizes[-1] == max(sizes) else 0
    if strangers > left_out:
        text = f"{strangers} rows were read that one card does not train on, which has {total}"
        return Check(_NAME, DIFFERS, text)
    dropped = sum(max((len(batch) for batch in batches), default=1) for batches in many)
    if unread >= dropped + padding:
        return Check(_NAME, DIFFERS, f"{unread} of the {total} rows that one card trains on were read by no rank")
    parts = [f"{shape}, together the {total} rows of one card, no overlap"]
    if unread or strangers:
        parts.append(f"but for incomplete last batches ({unread} rows that one card takes, {strangers} it leaves out)")
    if twice:
        parts.append(f"{twice} rows twice to make shards equal")
    return Check(_NAME, OK, "; ".join(parts))


def _apart(rows: list[Counter[str]], shape: str) -> Check:
    """Judge rows that cannot be compared with those of one card by whether ranks have them in common."""
    shared = _shared(rows)
    if shared <= len(rows) - 1:
        return Check(_NAME, OK, f"{shape}, no row on two ranks")
    if any(max(part.values(), default=1) > 1 for part in rows):
        return Check(_NAME, NOT_COMPARED, f"{shape}; equal rows come several times, so shared ones prove nothing")
    text = f"{shared} of the {sum(sum(part.values()) for part in rows)} rows of all ranks were read by another rank too"
    return Check(_NAME, DIFFERS, text)


def _shared(rows: list[Counter[str]]) -> int:
    """Return how many reads of a row there are beyond those of the rank that reads it most."""
    most: Counter[str] = Counter()
    for part in rows:
        most |= part
    return sum(sum(part.values()) for part in rows) - sum(most.values())


def _of_one_card(runs: Runs, number: int) -> Epoch | None:
    if runs.original is None or number not in runs.original.training():
        return None
    return (runs.original.epochs(number) or [([], False)])[0]


def _evaluation(runs: Runs) -> Check:
    """Compare what is read for evaluation on ranks with each other, and with one card."""
    said = 0
    shares: list[str] = []
    known = runs.ranks[0].iterators()
    # Of each dataset the first time: later ones are cut short on other steps here and there.
    first = {known[number]["dataset"]: number for number in reversed(runs.ranks[0].evaluation())}
    for number in sorted(first.values()):
        parts = [_first_rows(rank, number) for rank in runs.ranks]
        if not parts[0]:
            continue
        if any(part != parts[0] for part in parts[1:]):
            if runs.dealt:
                wrong, text = _dealt(runs, number)
                if wrong:
                    return Check(_NAME, DIFFERS, text)
                shares.append(text)
                continue
            return Check(_NAME, DIFFERS, "ranks evaluate on different rows: a dataset for evaluation is sharded")
        if runs.original is not None and number in runs.original.iterators():
            one = _first_rows(runs.original, number)
            if one and Counter(one) != Counter(parts[0]) and set(one) & set(parts[0]):
                return Check(_NAME, DIFFERS, f"ranks evaluate on {len(parts[0])} rows, one card on {len(one)}")
        said += len(parts[0])
    how = " (each computes with its share, and sums are exchanged)" if runs.dealt else ""
    whole = [f"evaluation whole: the same {said} rows on every rank{how}"] if said else []
    return Check(_NAME, OK, "; ".join([*whole, *dict.fromkeys(shares)] or ["no evaluation data was read"]))


def _dealt(runs: Runs, number: int) -> tuple[bool, str]:
    """Judge an evaluation of which each rank reads its share: whether something is wrong, and what is said of it."""
    epochs = [(rank.epochs(number) or [([], False)])[0] for rank in runs.ranks]
    together = Counter(row for batches, _ in epochs for batch in batches for row in batch)
    original = runs.original
    single = original.epochs(number)[:1] if original is not None and number in original.evaluation() else []
    if not single or not single[0][1] or not all(ended for _, ended in epochs):
        return False, "evaluation dealt over the ranks (not read to its end, so not compared with one card)"
    known = Counter(row for batch in single[0][0] for row in batch)
    if not set(known) & set(together):
        return False, "evaluation dealt over the ranks (its rows are drawn anew in each run, so not compared)"
    total = sum(known.values())
    if together != known:
        return (
            True,
            f"ranks together evaluate on {sum(together.values())} rows, one card on {total}, and not on the same",
        )
    return False, f"evaluation dealt over the ranks: together the {total} rows of one card, each as often"


def _first_rows(process: Process, number: int) -> list[str]:
    epochs = process.epochs(number)
    return [row for batch in epochs[0][0] for row in batch] if epochs else []
