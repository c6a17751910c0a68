"""Two versions of a program side by side: the parts that changed, with some lines around them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from .text import quoted

_CONTEXT = 3
_PAIRED = 2_500  # pairs of lines that are compared to find which became which; more are paired in order
_ALIKE = 0.4
_LONG = 1_000  # characters of a line beyond which it is shown as changed in whole

Row = tuple[str, int, str, int, str]


def side_by_side(before: str, after: str, names: tuple[str, str]) -> str:
    """Return a table of what changed between two different texts, ``names`` at the heads of its columns."""
    old, new = lines(before), lines(after)
    groups = SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_CONTEXT)
    parts = []
    ends = (0, 0)
    for group in groups:
        parts.append(_skipped(group[0][1] - ends[0]))
        parts.extend(_row(row) for code in group for row in _rows(code, old, new))
        ends = group[-1][2], group[-1][4]
    parts.append(_skipped(len(old) - ends[0]))
    body = "\n".join(part for part in parts if part)
    left, right = (quoted(name) for name in names)
    return f"""<table class="diff">
<caption>Lines taken away are marked with −, lines put in with +</caption>
<colgroup><col class="number"><col><col class="number"><col></colgroup>
<thead><tr><th scope="col"><abbr title="line number">#</abbr></th><th scope="col">{left}</th>
<th scope="col"><abbr title="line number">#</abbr></th><th scope="col">{right}</th></tr></thead>
<tbody>
{body}
</tbody></table>"""


def lines(text: str) -> list[str]:
    """Return the lines as Python and editors number them: a form feed or U+2028 ends none."""
    found = re.split("\r\n|\r|\n", text)
    return found[:-1] if found and not found[-1] else found


def _skipped(count: int) -> str:
    if count <= 0:
        return ""
    return f'<tr class="skipped"><td colspan="4">{count} equal line{"s" if count > 1 else ""}</td></tr>'


def _rows(code: tuple[str, int, int, int, int], old: Sequence[str], new: Sequence[str]) -> Iterator[Row]:
    """Yield kind, number and text on the left, number and text on the right; number 0 where there is nothing."""
    tag, i1, i2, j1, j2 = code
    if tag == "equal":
        yield from (("same", i + 1, old[i], j + 1, new[j]) for i, j in zip(range(i1, i2), range(j1, j2)))
        return
    pairs = _pairs(old[i1:i2], new[j1:j2]) if tag == "replace" else []
    i, j = i1, j1
    for left, right in [*pairs, (i2 - i1, j2 - j1)]:
        yield from (("gone", number + 1, old[number], 0, "") for number in range(i, i1 + left))
        yield from (("new", 0, "", number + 1, new[number]) for number in range(j, j1 + right))
        i, j = i1 + left, j1 + right
        if i < i2 and j < j2:
            yield "changed", i + 1, old[i], j + 1, new[j]
        i, j = i + 1, j + 1


def _pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return which old line became which new one: in order, and as like each other as can be in all."""
    if len(old) * len(new) > _PAIRED:
        return [(index, index) for index in range(min(len(old), len(new)))]
    # best[i][j]: the greatest likeness of the lines from i and j on
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    like = [[_likeness(a, b) for b in new] for a in old]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], like[i][j] + best[i + 1][j + 1] if like[i][j] else 0.0)
    pairs = []
    i = j = 0
    while i < len(old) and j < len(new):
        if like[i][j] and best[i][j] == like[i][j] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _likeness(old: str, new: str) -> float:
    """Return how alike two lines are, from ``_ALIKE`` to 1; 0 where they are no versions of one line."""
    matcher = SequenceMatcher(None, old.strip(), new.strip(), autojunk=False)
    if max(len(old), len(new)) > _LONG or matcher.quick_ratio() < _ALIKE:
        return 0.0
    ratio = matcher.ratio()
    return ratio if ratio >= _ALIKE else 0.0


def _row(row: Row) -> str:
    kind, i, left, j, right = row
    before, after = _marked(left, right) if kind == "changed" else (quoted(left), quoted(right))
    cells = [
        _cell("old", i, before, "−" if kind != "same" else ""),
        _cell("new", j, after, "+" if kind != "same" else ""),
    ]
    return f'<tr class="{kind}">{"".join(cells)}</tr>'


def _cell(side: str, number: int, code: str, sign: str) -> str:
    if not number:
        return f'<td class="number {side} none"></td><td class="{side} none"></td>'
    mark = f'<span class="sign">{sign}</span>' if sign else ""
    return f'<td class="number {side}">{number}</td><td class="{side}">{mark}<code>{code}</code></td>'


def _marked(old: str, new: str) -> tuple[str, str]:
    """Return two versions of a line with what differs marked, by words."""
    a, b = (re.findall(r"\w+|\s+|.", text, re.DOTALL) for text in (old, new))
    left, right = [], []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        gone, put = quoted("".join(a[i1:i2])), quoted("".join(b[j1:j2]))
        left.append(gone if tag == "equal" or not gone else f"<del>{gone}</del>")
        right.append(put if tag == "equal" or not put else f"<ins>{put}</ins>")
    return "".join(left), "".join(right)
