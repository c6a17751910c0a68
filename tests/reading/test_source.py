from __future__ import annotations

import codecs

import pytest

from ms_distify.reading.source import SourceError, decode, deepest_brackets

ROUND_TRIPS = [
    pytest.param(b"", "utf-8", "\n", id="empty"),
    pytest.param(b"x = 1", "utf-8", "\n", id="no line end"),
    pytest.param(b"a\r\nb\r\n", "utf-8", "\r\n", id="CRLF"),
    pytest.param(b"a\rb\r", "utf-8", "\r", id="CR"),
    pytest.param(b"a\r\nb\nc\n", "utf-8", "\n", id="mostly LF"),
    pytest.param(b"a\r\nb\r\nc\rd\n", "utf-8", "\r\n", id="mostly CRLF"),
    pytest.param("# 训练\n".encode(), "utf-8", "\n", id="UTF-8"),
    pytest.param(codecs.BOM_UTF8 + b"a\r\n", "utf-8", "\r\n", id="BOM"),
    pytest.param(codecs.BOM_UTF8 + b"# coding: utf-8\n", "utf-8", "\n", id="BOM and cookie"),
    pytest.param("# -*- coding: gbk -*-\n# 训练\n".encode("gbk"), "gbk", "\n", id="GBK"),
    pytest.param("#!/usr/bin/python\n# vim: set fileencoding=gb18030 :\n# 训\n".encode("gb18030"),
                 "gb18030", "\n",
                 id="vim, on line 2"),
    pytest.param("# coding: latin-1\n# é\n".encode("latin-1"), "iso-8859-1", "\n", id="latin-1"),
    pytest.param("# -*- coding:utf8 -*-\n# é\n".encode(), "utf8", "\n", id="utf8 spelled so"),
    pytest.param("# -*- CODING: UTF_8 -*-\n# é\n".encode(), "utf-8", "\n", id="no cookie: capitals"),
    pytest.param("# coding = U8\n# é\n".encode(), "U8", "\n", id="another spelling"),
    pytest.param("x = 1\nx = 2\n# coding: gbk\n# é\n".encode(), "utf-8", "\n", id="not on line 3"),
    pytest.param("# coding: shift_jis\n# 表\n".encode("shift_jis"), "shift_jis", "\n", id="backslash byte"),
    pytest.param(b"a\x0c\x0b\x1c\n\xe2\x80\xa8\n", "utf-8", "\n", id="no line ends to Python"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "encoding", "newline"), ROUND_TRIPS)
def test_round_trip(raw: bytes, encoding: str, newline: str) -> None:
    source = decode(raw, "x.py")
    assert source.encode(source.text) == raw
    assert codecs.lookup(source.encoding) == codecs.lookup(encoding)
    assert source.newline == newline
    assert not source.text.startswith("\ufeff")


REFUSED = [
    pytest.param("x".encode("utf-16"), None, "UTF-16", id="UTF-16"),
    pytest.param(b"a\r\nb\rc\n\0", 4, "NUL", id="NUL, line"),
    pytest.param(b"# coding: klingon\n", 1, "unknown encoding: klingon", id="unknown"),
    pytest.param(b"\n# coding: klingon\n", 2, "unknown encoding: klingon", id="unknown on line 2"),
    pytest.param(b"# coding: hex\n00", 1, "hex", id="hex"),
    pytest.param(b"# coding: rot13\n", 1, "rot13", id="rot13"),
    pytest.param(b"# coding: idna\n" + b"a" * 99, None, "idna", id="idna"),
    pytest.param(b"# coding: utf-16\n", None, "utf-16", id="utf-16 cookie"),
    pytest.param(b"\xff\n", 1, "utf-8", id="bad byte 1"),
    pytest.param(b"\n\xff\n", 2, "utf-8", id="bad byte 2"),
    pytest.param(b"\r\n\r\n\r\xff\n", 4, "utf-8", id="bad byte 4"),
    pytest.param(b"# coding: ascii\n\n\xc3\xa9\n", 3, "ascii", id="not ascii"),
    pytest.param(b"# coding: gbk\n#\xff\xff\n", 2, "gbk", id="not GBK"),
    pytest.param(codecs.BOM_UTF8 + b"# coding: gbk\n", 1, "encoding", id="BOM and GBK"),
    pytest.param(b"# coding: utf-7\n# +AGE-\n", None, "byte for byte", id="does not round-trip"),
]


@pytest.mark.parametrize(("raw", "line", "says"), REFUSED)
def test_refused(raw: bytes, line: int | None, says: str) -> None:
    with pytest.raises(SourceError, match=says) as caught:
        decode(raw, "x.py")
    if line is not None:
        assert caught.value.line == line
    assert "\n" not in caught.value.reason


def test_places() -> None:
    source = decode(b"ab\r\n\tc\rd\x0ce\n  f", "x.py")
    offsets = {name: source.text.index(name) for name in "acdef"}
    assert {name: source.line(at) for name, at in offsets.items()} == {"a": 1, "c": 2, "d": 3, "e": 3, "f": 4}
    assert {name: source.column(at) for name, at in offsets.items()} == {
        "a": 1,
        "c": 2,
        "d": 1,
        "e": 3,
        "f": 3,
    }
    assert [source.line_text(number) for number in (1, 2, 3, 4)] == ["ab", "\tc", "d\x0ce", "  f"]
    assert [source.indent(offsets[name]) for name in "acf"] == ["", "\t", "  "]
    assert source.line_end(offsets["a"]) == 4
    assert source.line_end(offsets["f"]) == len(source.text)
    assert source.line_start(offsets["e"]) == offsets["d"]


@pytest.mark.parametrize(
    ("text", "depth"),
    [("x", 0), ("()", 1), ("([{}])", 3), ("'((('", 0), ("# (((", 0), ("'''((\n'(''' (", 1), ("'\\'((' [", 1),
     (")))(", 1), ('"(\n(', 1), ("f'{(a)}'", 0)],
)  # fmt: skip
def test_deepest_brackets(text: str, depth: int) -> None:
    assert deepest_brackets(text)[0] == depth
