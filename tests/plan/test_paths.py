"""What is read from the spelling of paths."""

import libcst as cst
import pytest

from ms_distify.plan.paths import beginning, parents


@pytest.mark.parametrize(
    ("path", "text"),
    [
        pytest.param("'a/b.png'", "a/b.png", id="literal"),
        pytest.param("f'a/{x}.png'", "a/", id="f-string"),
        pytest.param("f'{x}/a.png'", "", id="f-string-that-begins-with-a-value"),
        pytest.param("'a/%d.png' % x", "a/", id="percent"),
        pytest.param("'a/{}.png'.format(x)", "a/", id="format"),
        pytest.param("'a/' + x", "a/", id="sum"),
        pytest.param("os.path.join('a', 'b', x)", "a/b/", id="join"),
        pytest.param("os.path.join(x, 'a')", "", id="join-of-a-value"),
        pytest.param("x", "", id="name"),
    ],
)
def test_how_a_path_begins(path: str, text: str) -> None:
    assert beginning(cst.parse_expression(path)) == text


def test_folders_around_a_path() -> None:
    assert parents("./a/b/c.png") == ["a/b", "a"]
    assert parents("c.png") == []
