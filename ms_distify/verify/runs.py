"""The processes of a verification."""

from __future__ import annotations

from dataclasses import dataclass

from .records import Process


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
        own_rows: the original on one card, on the rows of rank 0 alone, for one step; made where losses tell that one card
            at N times the batch may be no measure.
        own_again: that once more; made where its loss is another than rank 0's, to see whether it draws random numbers.
        shuffled: the reference once more, on the rows of each batch in another order; made where rounding may be all that
            tells ranks from it, to measure that.
        divided: whether the reference's gradients were divided by the number of ranks, for its loss adds up rows.
        alike: rank 0 of ranks that all read the rows of rank 0; made where one card at N times the batch is no measure.
        alike_one: the original on one card on these rows.
        alike_again: that once more; made where the two differ, to see whether it repeats itself.
        dealt: whether the converted program deals its evaluations over the ranks and sums what they count.
        strict: whether what cannot be compared counts as a difference.
    """

    ranks: list[Process]
    original: Process | None = None
    alone: Process | None = None
    again: Process | None = None
    reference: Process | None = None
    why_no_reference: str = ""
    own_rows: Process | None = None
    own_again: Process | None = None
    shuffled: Process | None = None
    divided: bool = False
    alike: Process | None = None
    alike_one: Process | None = None
    alike_again: Process | None = None
    dealt: bool = False
    strict: bool = False
