"""The page: what it holds, what it never holds, and what a browser makes of it."""

from __future__ import annotations

import html
import math
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ms_distify.verify.outcome import (
    CHECKS,
    COULD_NOT_RUN,
    DIFFERENT,
    DIFFERS,
    NOT_COMPARED,
    NOTED,
    OK,
    PROVED,
    Check,
    Curves,
    Outcome,
)
from ms_distify.verify.page import render

NAN, INF = math.nan, math.inf
VOID = {"meta", "link", "br", "col", "img", "input", "hr"}
# Elements of SVG that are written <x/>.
SELF_CLOSED = {"path", "polyline"}
EVIL = "</title></style></table><script>alert('x')</script><img src=\"http://evil.test/x\" onerror=alert(1)>&lt;"


def outcome(**given: object) -> Outcome:
    curves = Curves([2.0, 1.5, 1.0], [[2.1, 1.4, 1.1], [1.9, 1.6, 0.9]], [0.0, 0.0, 0.0, 0.0], [0.0, 1e-7, 2e-7, 3e-6])
    checks = tuple(Check(name, OK, f"all is well with {name}") for name in CHECKS)
    base = Outcome(
        program="train.py",
        converted="train_dist.py",
        verdict=PROVED,
        why="",
        ranks=2,
        steps=3,
        device="CPU",
        changes=("dropout is off", "shuffling is off"),
        checks=checks,
        curves=curves,
        original="import mindspore as ms\nms.set_context(device_id=3)\ntrain()\n",
        output="import os\nimport mindspore as ms\nms.set_context(device_id=int(os.getenv('DEVICE_ID')))\ntrain()\n",
    )
    return replace(base, **given)  # type: ignore[arg-type]


class Element:
    def __init__(self, tag: str, attributes: dict[str, str], parent: Element | None) -> None:
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.inside: list[Element | str] = []

    def all(self, tag: str = "", cls: str = "") -> list[Element]:
        found = []
        for child in self.inside:
            if isinstance(child, Element):
                if tag in ("", child.tag) and (not cls or cls in child.attributes.get("class", "").split()):
                    found.append(child)
                found.extend(child.all(tag, cls))
        return found

    def one(self, tag: str = "", cls: str = "") -> Element:
        (found,) = self.all(tag, cls)
        return found

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.inside)


class Reader(HTMLParser):
    """Reads a page strictly: every element is closed, in order, and no attribute stands twice."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.at = Element("", {}, None)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, attrs)
        element = Element(tag, {name: value or "" for name, value in attrs}, self.at)
        self.at.inside.append(element)
        if tag not in VOID:
            self.at = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SELF_CLOSED, tag
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.at.tag == tag, f"</{tag}> closes <{self.at.tag}>"
        assert self.at.parent is not None
        self.at = self.at.parent

    def handle_data(self, data: str) -> None:
        self.at.inside.append(data)


def read(page: str) -> Element:
    """Parse a page and check what holds for every one."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.at is reader.root, "all is closed"
    root = reader.root
    assert page.startswith("<!DOCTYPE html>")
    assert root.one("html").attributes["lang"] == "en"
    assert root.one("body").one("h1").text.strip()
    page.encode()  # no halves of surrogate pairs
    tags = {element.tag for element in root.all()}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form", "use", "image"}
    ids = [element.attributes["id"] for element in root.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in root.all():
        for name, value in element.attributes.items():
            assert not name.startswith("on"), name
            assert name not in ("src", "href", "action", "srcset", "xlink:href", "data"), name
            if name.startswith("aria-labelledby"):
                assert set(value.split()) <= set(ids)
    style = root.one("head").one("style").text
    assert "url(" not in style
    assert "@import" not in style
    policy = next(meta for meta in root.all("meta") if "http-equiv" in meta.attributes)
    assert policy.attributes["content"] == "default-src 'none'; style-src 'unsafe-inline'"
    for svg in root.all("svg"):
        if "aria-hidden" not in svg.attributes:
            assert svg.attributes["role"] == "img"
            assert [child.tag for child in svg.inside if isinstance(child, Element)][:2] == ["title", "desc"]
    for head in root.all("th"):
        assert head.attributes["scope"] in ("col", "row")
    levels = [int(element.tag[1]) for element in root.all() if re.fullmatch("h[1-6]", element.tag)]
    assert levels == [1] + [2] * (len(levels) - 1)
    return root


def section(root: Element, name: str) -> Element:
    return next(part for part in root.all("section") if part.attributes["aria-labelledby"] == name)


def lines(part: Element) -> dict[str, Element]:
    """Return the drawn curves by name."""
    plot = part.one("", "plot").one("svg")
    found = {}
    for group in plot.all("g", "line"):
        (title,) = group.all("title")
        assert title.text not in found
        found[title.text] = group
    return found


def points(group: Element) -> list[tuple[float, float]]:
    """Return what is drawn of a curve, dots too."""
    found = []
    for element in group.all():
        if element.tag == "polyline":
            pairs = [pair.split(",") for pair in element.attributes["points"].split()]
            assert len(pairs) > 1
            found += [(float(x), float(y)) for x, y in pairs]
        elif element.attributes.get("class") == "dot":
            place = re.fullmatch(r"M([\d.]+),([\d.]+)h0", element.attributes["d"])
            assert place is not None
            found.append((float(place[1]), float(place[2])))
    assert all(0 <= x <= 1000 and 0 <= y <= 320 for x, y in found), found
    return found


# -- head and checks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "word", "why"),
    [
        pytest.param(PROVED, "Proved", "", id="proved"),
        pytest.param(DIFFERENT, "Differs", "equal course: a differs", id="differs"),
        pytest.param(COULD_NOT_RUN, "Could not run", "no data: --fake-data", id="could not run"),
        pytest.param("new <b>", "new <b>", "", id="a verdict of the future"),
    ],
)
def test_the_verdict_stands_first(verdict: str, word: str, why: str) -> None:
    root = read(render(outcome(verdict=verdict, why=why, logs="/tmp/logs")))
    header = next(child for child in root.one("body").inside if isinstance(child, Element))
    assert header.tag == "header"
    assert header.one("h1").text.split(" ", 1)[1] == word
    assert why in header.text
    assert root.one("head").one("title").text == f"train.py: {verdict} – ms-distify verify"
    facts = dict(zip([dt.text for dt in header.all("dt")], [dd.text for dd in header.all("dd")]))
    assert facts == {
        "Program": "train.py",
        "Compared with": "train_dist.py",
        "Ranks": "2",
        "Steps": "3",
        "Device": "CPU",
        "What the processes printed": "/tmp/logs",
    }


def test_what_was_changed() -> None:
    root = read(render(outcome()))
    assert [item.text for item in section(root, "changes").all("li")] == ["dropout is off", "shuffling is off"]
    assert section(read(render(outcome(changes=()))), "changes").one("p").text == "Nothing."


def rows(root: Element) -> list[list[str]]:
    body = section(root, "checks").one("tbody")
    return [[cell.text for cell in row.inside if isinstance(cell, Element)] for row in body.all("tr")]


def test_every_check_is_shown_with_its_meaning() -> None:
    statuses = [OK, DIFFERS, NOT_COMPARED, NOTED]
    checks = tuple(Check(name, statuses[i % 4], f"figure {i}") for i, name in enumerate(CHECKS))
    found = rows(read(render(outcome(checks=checks[::-1]))))
    assert [row[0] for row in found] == [name + meaning for name, meaning in CHECKS.items()]
    assert [row[1].split(" ", 1)[1] for row in found] == [statuses[i % 4] for i in range(len(CHECKS))]
    assert len({row[1].split(" ", 1)[0] for row in found}) == 4, "a sign of its own for each status"
    assert [row[2] for row in found] == [f"figure {i}" for i in range(len(CHECKS))]


def test_checks_that_were_not_reached_and_unknown_ones() -> None:
    found = rows(read(render(outcome(checks=(Check("starts", DIFFERS, "died"), Check("new", OK, "fine"))))))
    assert found[0][1:] == ["✗ differs", "died"]
    assert all(row[1:] == ["○ not reached", "the verification ended before it"] for row in found[1:-1])
    assert found[-1] == ["new", "✓ ok", "fine"]
    assert len(found) == len(CHECKS) + 1


# -- escaping --------------------------------------------------------------------------------------------------------


def test_everything_is_escaped() -> None:
    curves = Curves([1.0], [[1.0]], [0.0, 1.0], [0.0, 1.0])
    root = read(
        render(
            outcome(
                program=EVIL,
                converted=EVIL,
                verdict=EVIL,
                why=EVIL,
                device=EVIL,
                logs=EVIL,
                changes=(EVIL,),
                checks=(Check("starts", EVIL, EVIL), Check(EVIL, EVIL, EVIL)),
                curves=curves,
                original=f"a\n{EVIL}\nb{EVIL}\n",
                output=f"a\n{EVIL}\nc{EVIL}\n",
            )
        )
    )
    # Title, twice; heading; program, converted, why, device, logs; a change; status, message; name, status, message; two heads
    # of the diff; one line in both programs, and one in each that differs by its first word.
    assert root.text.count(EVIL) == 2 + 1 + 5 + 1 + 2 + 3 + 2 + 4


def test_what_cannot_be_seen_is_shown() -> None:
    # Characters that hide code or turn it round, and such as no file can hold.
    text = "a\x00b\x0cc\x1bd\u202ee\u2066f\ud800g\ufeffh\ti"
    root = read(render(outcome(original=text + "\n", output=text + "2\n", why=text)))
    shown = "a⟨U+0000⟩b⟨U+000C⟩c⟨U+001B⟩d⟨U+202E⟩e⟨U+2066⟩f⟨U+D800⟩g⟨U+FEFF⟩h\ti"
    assert [code.text for code in section(root, "programs").all("code")] == [shown, shown + "2"]
    assert root.one("", "why").text == shown


# -- curves ----------------------------------------------------------------------------------------------------------


def test_losses_of_one_card_and_every_rank() -> None:
    part = section(read(render(outcome())), "losses")
    drawn = lines(part)
    assert list(drawn) == ["rank 0", "rank 1", "one card, at the batch of all ranks", "mean of the ranks"]
    for group in drawn.values():
        assert [x for x, _ in points(group)] == [0, 500, 1000]
    assert points(drawn["one card, at the batch of all ranks"]) == points(drawn["mean of the ranks"])
    # The greatest value is the highest: 2.1 of rank 0 in step 1.
    assert min((y, name) for name, group in drawn.items() for _, y in points(group))[1] == "rank 0"
    assert [key.text.strip() for key in part.one("", "legend").all("li")] == list(drawn)
    table = [[cell.text for cell in row.inside if isinstance(cell, Element)] for row in part.one("table").all("tr")]
    assert table[0][0] == "step"
    step1 = dict(zip(table[0], table[1]))
    assert step1["one card, at the batch of all ranks"] == step1["mean of the ranks"] == "2"
    assert (step1["step"], step1["rank 0"], step1["rank 1"]) == ("1", "2.1", "1.9")


@pytest.mark.parametrize("steps", [1, 2, 20, 1000])
@pytest.mark.parametrize("ranks", [1, 2, 8, 9, 64])
def test_sizes(ranks: int, steps: int) -> None:
    losses = [[5 / (step + 1) + rank / 100 for step in range(steps)] for rank in range(ranks)]
    curves = Curves(losses[0], losses, [0.0] * (steps + 1), [1e-9 * step for step in range(steps + 1)])
    root = read(render(outcome(ranks=ranks, steps=steps, curves=curves)))
    part = section(root, "losses")
    drawn = lines(part)
    assert {f"rank {rank}" for rank in range(ranks)} <= set(drawn)
    assert all(len(points(group)) == steps for group in drawn.values())
    assert len(part.one("", "legend").all("li")) <= 10
    if ranks <= 8:
        looks = [drawn[f"rank {rank}"].attributes["class"] for rank in range(ranks)]
        assert len(set(looks)) == ranks
    difference = section(root, "differences")
    assert all(len(points(group)) == steps + 1 for group in lines(difference).values())
    for labelled in (part, difference):
        assert 1 <= len(labelled.one("", "across").all("span")) <= 8
        assert 2 <= len(labelled.one("", "up").all("span")) <= 12
        assert len(labelled.one("tbody").all("tr")) <= 21


def test_the_rank_that_stands_out_is_named() -> None:
    losses = [[1.0 + rank / 1000] * 5 for rank in range(16)]
    losses[11] = [3.0] * 5
    part = section(read(render(outcome(curves=Curves([], losses)))), "losses")
    assert [key.text.strip() for key in part.one("", "legend").all("li")] == [
        "rank 0 to rank 15, one line each",
        "rank 11, farthest from the mean",
        "mean of the ranks",
    ]
    assert "No loss of one card was seen." in part.text


@pytest.mark.parametrize(
    ("values", "drawn", "marks", "note"),
    [
        pytest.param([1.0, NAN, 3.0, 4.0], 3, 1, "NaN or infinite in 1 of 4 values, first in step 2", id="a gap"),
        pytest.param([NAN, 2.0, NAN, 4.0], 2, 2, "NaN or infinite in 2 of 4 values, first in step 1", id="lone points"),
        pytest.param([1.0, 2.0, INF, -INF], 2, 1, "NaN or infinite in 2 of 4 values, first in step 3", id="infinity"),
        pytest.param([NAN] * 4, 0, 1, "NaN or infinite in 4 of 4 values, first in step 1", id="all of a rank"),
        pytest.param([1.0, 2.0], 2, 0, "ends after step 2", id="ends early"),
        pytest.param([], 0, 0, "nothing was seen", id="empty"),
    ],
)
def test_values_that_are_no_numbers(values: list[float], drawn: int, marks: int, note: str) -> None:
    curves = Curves([1.0, 1.0, 1.0, 1.0], [[1.0, 2.0, 3.0, 4.0], values])
    part = section(read(render(outcome(curves=curves))), "losses")
    group = lines(part)["rank 1"]
    assert len(points(group)) == drawn
    lost = [path.attributes["d"] for path in group.all("path", "lost")]
    assert sum(path.count("M") for path in lost) == marks
    assert f"rank 1: {note}" in " ".join(p.text for p in part.all("p", "note"))
    assert f"rank 1: {note}" in part.one("desc").text


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([0.0, 0.0], id="zeros"),
        pytest.param([-1.0, -1.0], id="equal and negative"),
        pytest.param([1e308, -1e308], id="huge range"),
        pytest.param([5e-324, 0.0], id="tiny"),
        pytest.param([1.0, 1.0000000000000002], id="neighbours"),
        pytest.param([1e-30, 1e30], id="many decades"),
        pytest.param([1.7e308, 1.79e308], id="at the end of what there is"),
    ],
)
def test_scales(values: list[float]) -> None:
    root = read(render(outcome(curves=Curves(values, [values], values, [abs(value) for value in values]))))
    for name in ("losses", "differences"):
        for group in lines(section(root, name)).values():
            assert len(points(group)) == 2


def test_differences_on_a_logarithmic_scale() -> None:
    part = section(read(render(outcome())), "differences")
    assert part.one("figcaption").text == "Logarithmic scale"
    drawn = lines(part)
    assert list(drawn) == ["between ranks", "to one card"]
    zeros, grown = points(drawn["between ranks"]), points(drawn["to one card"])
    assert len(zeros) == len(grown) == 4, "from before step 1"
    assert len({y for _, y in zeros}) == 1
    assert grown[0] == zeros[0], "zero has a line of its own"
    assert zeros[0][1] > grown[1][1] > grown[2][1] > grown[3][1], "below all that is more"
    # Equal factors are equal distances: 1e-7 to 1e-6 is as far as 1e-6 to 1e-5.
    places = {tick.text: float(tick.attributes["style"][7:-1]) for tick in part.one("", "up").all("span")}
    assert list(places) == ["0", "1e-7", "1e-6", "1e-5"]
    assert places["1e-5"] - places["1e-6"] == pytest.approx(places["1e-6"] - places["1e-7"], abs=0.02)
    assert "Not the least difference between ranks in any step." in part.text
    assert "Not the least difference to one card" not in part.text


@pytest.mark.parametrize(
    ("given", "name", "words"),
    [
        pytest.param({"curves": Curves()}, "losses", "no loss was seen in these runs", id="no losses"),
        pytest.param({"curves": Curves([], [[], []])}, "losses", "no loss was seen in these runs", id="empty ranks"),
        pytest.param(
            {"curves": Curves([NAN], [[INF]])}, "losses", "every loss was NaN or infinite", id="no finite loss"
        ),
        pytest.param({"curves": Curves([1.0], [])}, "losses", "No loss of a rank was seen.", id="one card alone"),
        pytest.param({"curves": Curves()}, "differences", "parameters were not compared", id="no differences"),
        pytest.param(
            {"curves": Curves([], [], [NAN], [])}, "differences", "every difference was NaN", id="no finite difference"
        ),
        pytest.param(
            {"curves": Curves([], [], [0.0], [])},
            "differences",
            "Parameters were not compared to one card.",
            id="one of the two",
        ),
        pytest.param({"original": ""}, "programs", "no single-card program to compare with", id="no original"),
        pytest.param({"output": ""}, "programs", "no converted program", id="no output"),
        pytest.param({"original": "", "output": ""}, "programs", "no programs to show", id="neither"),
        pytest.param({"original": "a\n", "output": "a\n"}, "programs", "the same text", id="no difference"),
    ],
)
def test_what_is_missing_is_said(given: dict[str, object], name: str, words: str) -> None:
    assert words in section(read(render(outcome(**given))), name).text


# -- the diff --------------------------------------------------------------------------------------------------------


def diff(original: str, output: str) -> list[tuple[str, list[str]]]:
    """Return the rows: kind, and the texts of their cells."""
    part = section(read(render(outcome(original=original, output=output))), "programs")
    return [
        (row.attributes["class"], [cell.text for cell in row.inside if isinstance(cell, Element)])
        for row in part.one("tbody").all("tr")
    ]


def test_side_by_side() -> None:
    part = section(read(render(outcome())), "programs")
    assert [head.text for head in part.one("thead").all("th")] == ["#", "train.py", "#", "train_dist.py"]
    assert diff(outcome().original, outcome().output) == [
        ("new", ["", "", "1", "+import os"]),
        ("same", ["1", "import mindspore as ms", "2", "import mindspore as ms"]),
        (
            "changed",
            ["2", "−ms.set_context(device_id=3)", "3", "+ms.set_context(device_id=int(os.getenv('DEVICE_ID')))"],
        ),
        ("same", ["3", "train()", "4", "train()"]),
    ]
    assert "".join(put.text for put in part.all("ins")) == "int(os.getenv('DEVICE_ID'))"
    assert [gone.text for gone in part.all("del")] == ["3"]


def test_only_what_changed_with_some_context() -> None:
    old = [f"line{number} = {number}" for number in range(1, 101)]
    new = [*old[:49], "changed = 50", *old[50:]]
    found = diff("\n".join(old) + "\n", "\n".join(new) + "\n")
    assert [(kind, cells[0]) for kind, cells in found] == [
        ("skipped", "46 equal lines"),
        ("same", "47"),
        ("same", "48"),
        ("same", "49"),
        ("changed", "50"),
        ("same", "51"),
        ("same", "52"),
        ("same", "53"),
        ("skipped", "47 equal lines"),
    ]


def test_a_changed_line_stands_beside_what_it_became() -> None:
    # The new line in front must not be taken for the changed one.
    found = diff(
        "train = ds.MnistDataset(path)\n", "ms.set_seed(0)\ntrain = ds.MnistDataset(path, num_shards=n, shard_id=r)\n"
    )
    assert [kind for kind, _ in found] == ["new", "changed"]


def test_lines_end_where_python_ends_them() -> None:
    # A form feed or U+2028 ends no line; CR LF and LF are the same.
    found = diff("a\x0cb\u2028c\r\nd\r\n", "a\x0cb\u2028c\ne\n")
    assert [(kind, cells[0]) for kind, cells in found] == [("same", "1"), ("gone", "2"), ("new", "")]


def test_large_and_long() -> None:
    old = "\n".join(f"x{number} = " + "y" * 300 for number in range(3000))
    new = "\n".join(f"z{number} = " + "y" * 300 for number in range(0, 6000, 2))
    assert [kind for kind, _ in diff("a\n" + old, "a\n" + new)] == ["same", *["changed"] * 3000]
    wide = "a = " + "1, " * 20_000
    assert [kind for kind, _ in diff(wide, wide + "2")] == ["gone", "new"]


# -- in a browser ----------------------------------------------------------------------------------------------------

CHROMES = ("chromium", "chromium-browser", "chromium-headless-shell", "google-chrome", "chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",  # refuses to start for root otherwise
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
]


@pytest.fixture(scope="module")
def browser() -> tuple[str, str]:
    """The name of a kind of browser and its path."""
    for kind, names in (("chrome", CHROMES), ("firefox", ("firefox", "firefox-esr"))):
        for name in names:
            path = shutil.which(name)
            if path is not None:
                return kind, path
    pytest.skip("no browser on PATH (chromium, chromium-headless-shell, google-chrome or firefox) to open the page in")


def bad() -> Outcome:
    curves = Curves(
        [2.0, 1.5, 1.0, 0.8],
        [[2.1, 1.4, 1.1, NAN], [1.9, INF, 0.9, 0.7], [NAN, NAN, NAN, NAN]],
        [0.0, 0.1, 0.2, NAN, 0.3],
        [0.0, 1e-7, 2e-7, 3e-6, 1e-3],
    )
    return outcome(verdict=DIFFERENT, why=EVIL, curves=curves, original=EVIL + "\n", output=EVIL + "\nmore()\n")


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, encoding="utf-8", errors="replace")
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_dom_that_a_browser_makes(browser: tuple[str, str], tmp_path: Path) -> None:
    kind, path = browser
    if kind != "chrome":
        pytest.skip("only Chromium prints the document it made; Firefox takes the pictures below")
    page = tmp_path / "report.html"
    page.write_text(render(bad()), encoding="utf-8")
    dom = run([path, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()])
    assert "<script" not in dom
    assert "<img" not in dom
    assert dom.count("<section") == 5
    assert dom.count("<tr") == render(bad()).count("<tr"), "no row was moved or dropped in mending"
    assert dom.count("<polyline") == render(bad()).count("<polyline")
    assert html.escape(EVIL, quote=False) in dom


@pytest.mark.parametrize("width", [1200, 500])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_is_not_blank(browser: tuple[str, str], tmp_path: Path, scheme: str, width: int) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed; it comes with MindSpore")
    kind, path = browser
    page, shot = tmp_path / "report.html", tmp_path / "shot.png"
    page.write_text(render(outcome()), encoding="utf-8")
    profile = tmp_path / "profile"
    if kind == "chrome":
        dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
        take = [*FLAGS, *dark, f"--user-data-dir={profile}", f"--window-size={width},2600", f"--screenshot={shot}"]
    else:
        profile.mkdir()
        prefs = {"layout.css.prefers-color-scheme.content-override": int(scheme == "light")}
        prefs["ui.systemUsesDarkTheme"] = int(scheme == "dark")
        (profile / "user.js").write_text("".join(f'user_pref("{name}", {value});\n' for name, value in prefs.items()))
        take = ["--headless", "--profile", str(profile), f"--window-size={width},2600", "--screenshot", str(shot)]
    run([path, *take, page.as_uri()])
    with image.open(shot) as opened:
        picture = opened.convert("RGB")
    assert picture.width == width
    paper = picture.getpixel((width - 1, picture.height - 1))
    assert (max(paper) < 60) if scheme == "dark" else (min(paper) > 240), paper
    colours = picture.crop((0, 0, width, 200)).getcolors(200 * width)
    assert len(colours) > 20, "letters are smoothed to many shades"
    # The verdict is green, as its left edge is.
    assert any(green > red + 60 for _, (red, green, _) in picture.crop((0, 0, 60, 200)).getcolors(60 * 200))
    # Nothing is wider than the screen: the right margin is paper all the way down.
    assert picture.crop((width - 4, 0, width, picture.height)).getcolors() == [(4 * picture.height, paper)]
