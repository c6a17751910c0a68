"""Working copies of a project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ms_distify.exits import Stop
from ms_distify.verify import work
from ms_distify.verify.work import link_neighbours, make_copy, state


def test_data_beside_the_project_is_found_from_its_copy(tmp_path: Path) -> None:
    root = tmp_path / "here" / "src"
    (root / "tools").mkdir(parents=True)
    for name in ("conll", "given", "unnamed", "other"):
        (root.parent / name).mkdir()
        (root.parent / name / "x.txt").write_text(name)
    (root / "train.py").write_text("read('../conll/x.txt', '../missing', '../src/train.py')\n")
    (root / "tools" / "config.yaml").write_text("path: ../../other/x.txt\n")
    copy = tmp_path / "run" / "work"
    make_copy(root, copy)
    linked = link_neighbours(root, copy, ("--data=../given", "x"))
    assert linked == [root.parent / name for name in ("conll", "given", "other")]
    assert (copy / ".." / "conll" / "x.txt").read_text() == "conll"
    assert (copy / "tools" / ".." / ".." / "other" / "x.txt").read_text() == "other"
    assert sorted(path.name for path in copy.parent.iterdir()) == ["conll", "given", "other", "work"]


def test_a_folder_of_far_too_many_files_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MOST_FILES", 3)
    (tmp_path / "home").mkdir()
    for number in range(3):
        (tmp_path / "home" / f"{number}.txt").write_text("")
    work.make_copy(tmp_path / "home", tmp_path / "copy")
    (tmp_path / "home" / "3.txt").write_text("")
    with pytest.raises(Stop, match="more than 3 files"):
        work.make_copy(tmp_path / "home", tmp_path / "another")


def test_what_comes_and_changes_in_a_folder_is_seen(tmp_path: Path) -> None:
    for name in ("sub", "elsewhere"):
        (tmp_path / name).mkdir()
    work = tmp_path / "sub"
    for name in ("same", "longer", "touched", "gone"):
        (work / name).write_text("x")
        os.utime(work / name, ns=(10**9, 10**9))
    (work / "data").symlink_to(tmp_path / "elsewhere")
    before = state(work)
    (work / "longer").write_text("xx")
    os.utime(work / "longer", ns=(10**9, 10**9))
    os.utime(work / "touched", ns=(2 * 10**9, 2 * 10**9))
    (work / "gone").unlink()
    (work / "new").mkdir()
    (work / "new" / "file").write_text("")
    (tmp_path / "elsewhere" / "file").write_text("not below the folder")
    after = state(work)
    changed = {path for path, seen in after.items() if before.get(path) != seen}
    assert changed == {str(work / name) for name in ("longer", "touched", "new/file")}
