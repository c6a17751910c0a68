"""Working copies of a project."""

from __future__ import annotations

from pathlib import Path

from ms_distify.verify.work import link_neighbours, make_copy


def test_data_beside_the_project_is_found_from_its_copy(tmp_path: Path) -> None:
    root = tmp_path / "here" / "src"
    (root / "tools").mkdir(parents=True)
    for name in ("conll", "given", "unnamed", "other"):
        (root.parent / name).mkdir()
        (root.parent / name / "x.txt").write_text(name)
    (root / "train.py").write_text("read('../conll/x.txt', '../missing', '../src/train.py')\n")
    (root / "tools" / "config.yaml").write_text("path: ../../other/x.txt\n")
    work = tmp_path / "run" / "work"
    make_copy(root, work)
    linked = link_neighbours(root, work, ("--data=../given", "x"))
    assert linked == [root.parent / name for name in ("conll", "given", "other")]
    assert (work / ".." / "conll" / "x.txt").read_text() == "conll"
    assert (work / "tools" / ".." / ".." / "other" / "x.txt").read_text() == "other"
    assert sorted(path.name for path in work.parent.iterdir()) == ["conll", "given", "other", "work"]
