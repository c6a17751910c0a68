import re
from pathlib import Path

import pytest

from ms_distify.report.docs import page
from ms_distify.rules import Rule, explain, rules

ROOT = Path(__file__).parents[2]


def test_the_page_in_docs_is_the_page_of_the_rules() -> None:
    assert (ROOT / "docs" / "rules.md").read_text() == page(), "run: make docs"


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.code)
def test_every_rule_says_what_why_and_shows_code(rule: Rule) -> None:
    assert len(rule.doc.split("\n\n")) >= 3, "what, why, example"
    assert re.search(r"^Before.*::$", rule.doc, re.MULTILINE)
    assert explain(rule.code.lower()) is None
    assert rule.title in str(explain(rule.code))


def test_every_code_in_the_source_is_documented() -> None:
    used = {code for file in (ROOT / "ms_distify").rglob("*.py") for code in re.findall(r"MSD\d{3}", file.read_text())}
    assert used <= {rule.code for rule in rules()}


def test_every_code_in_the_readme_is_documented() -> None:
    codes = set(re.findall(r"MSD\d{3}", (ROOT / "README.md").read_text()))
    assert codes <= {rule.code for rule in rules()}


def test_an_unknown_code_has_no_explanation() -> None:
    assert explain("MSD999") is None
