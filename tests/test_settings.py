from __future__ import annotations

import sys
from pathlib import Path

import pytest
from test_cli import PROGRAM, run

from ms_distify.settings import Settings, SettingsError, from_pyproject

HEAD = "[tool.ms-distify]\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("[tool.other]\nseed = 'x'\n", id="another tool"),
        pytest.param("this is no TOML, and not ours\n", id="broken, but says nothing about us"),
        pytest.param("[project]\ndependencies = ['ms-distify']\n", id="only a dependency"),
        pytest.param(HEAD, id="no keys"),
        pytest.param("# ms-distify\ntool = 3\n", id="tool is no table"),
    ],
)
def test_defaults(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert from_pyproject(tmp_path) == Settings(seed=0, ranks=8)


def test_no_file(tmp_path: Path) -> None:
    assert from_pyproject(tmp_path) == Settings()


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(HEAD + "seed = 1\nranks = 2\n")
    assert from_pyproject(tmp_path / "a" / "b") == Settings(seed=1, ranks=2)
    (tmp_path / "a" / "pyproject.toml").write_text(HEAD + "seed = 3\n")
    assert from_pyproject(tmp_path / "a" / "b") == Settings(seed=3, ranks=8)


def test_the_command_line_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(HEAD + "seed = 5\nranks = 4\n")
    (tmp_path / "train.py").write_text(PROGRAM)
    assert b"+ms.set_seed(5)\n" in run("train.py", "--dry-run").out
    assert b"+ms.set_seed(0)\n" in run("train.py", "--dry-run", "--seed", "0").out
    assert b"+ms.set_seed(5)\n" in run("-", "--dry-run", stdin=PROGRAM.encode()).out
    ran = run("train.py", "-o", "out.py")
    assert "bash run_distribute.sh -n 4" in ran.err
    assert "4" in (tmp_path / "run_distribute.sh").read_text()


WRONG = [
    pytest.param(
        "sead = 1\n", "no setting 'sead'; there are global_batch, quiet_ranks, ranks, scale_lr, seed", id="unknown key"
    ),
    pytest.param("seed = 'x'\n", "seed must be a whole number", id="text"),
    pytest.param("seed = 1.5\n", "seed must be a whole number", id="fraction"),
    pytest.param("seed = true\n", "seed must be a whole number", id="truth value"),
    pytest.param("seed = -1\n", "seed must be a whole number", id="negative seed"),
    pytest.param("seed = 4294967296\n", "seed must be a whole number", id="seed too large"),
    pytest.param("ranks = 0\n", "ranks must be a whole number", id="no ranks"),
    pytest.param("ranks = 10000\n", "ranks must be a whole number", id="too many ranks"),
    pytest.param("global_batch = 'shrink'\n", 'global_batch must be "grow" or "keep"', id="unknown word"),
    pytest.param("quiet_ranks = 1\n", "quiet_ranks must be true or false", id="no truth value"),
    pytest.param("ranks = [8]\n", "ranks must be a whole number", id="list"),
    pytest.param("seed = \n", "pyproject.toml: ", id="no TOML"),
    pytest.param("seed = 1\nseed = 2\n", "pyproject.toml: ", id="twice"),
]


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, says: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(HEAD + text)
    (tmp_path / "train.py").write_text(PROGRAM)
    with pytest.raises(SettingsError, match=r"pyproject\.toml"):
        from_pyproject(tmp_path)
    ran = run("train.py", "--in-place")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, b"", 1)
    assert says in ran.err
    assert (tmp_path / "train.py").read_text() == PROGRAM


KEEP, LINEAR = "global_batch = 'keep'\n", "scale_lr = 'linear'\n"


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        pytest.param("", ["--global-batch", "keep", "--scale-lr", "linear"], "does not go with", id="both on the line"),
        pytest.param(HEAD + KEEP, ["--scale-lr", "linear"], "does not go with", id="one in the file"),
        pytest.param(HEAD + KEEP + LINEAR, [], "does not go with", id="both in the file"),
        pytest.param("", ["--warmup-epochs", "2"], "needs --scale-lr", id="warm-up of nothing"),
        pytest.param("", ["--scale-lr", "square"], "square", id="unknown scaling"),
    ],
)
def test_what_does_not_go_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, options: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / "train.py").write_text(PROGRAM)
    ran = run("train.py", "--in-place", *options)
    assert ran.code == 2
    assert says in ran.err
    assert (tmp_path / "train.py").read_text() == PROGRAM


def test_options_win_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(HEAD + KEEP + "quiet_ranks = true\n")
    (tmp_path / "train.py").write_text(PROGRAM)
    assert b"sys.stdout" in run("train.py", "--dry-run").out
    other = run("train.py", "--dry-run", "--global-batch", "grow", "--scale-lr", "linear", "--no-quiet-ranks").out
    assert b"scale_learning_rate" in other
    assert b"batch_per_rank" not in other
    assert b"sys.stdout" not in other


def test_not_a_table_and_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\nms-distify = 3\n")
    with pytest.raises(SettingsError, match="must be a table"):
        from_pyproject(tmp_path)
    (tmp_path / "pyproject.toml").write_bytes(HEAD.encode() + b"# \xff\n")
    with pytest.raises(SettingsError, match="utf-8"):
        from_pyproject(tmp_path)


def test_reading_needs_no_toml_parser_when_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tomllib", None)
    monkeypatch.setitem(sys.modules, "tomli", None)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert from_pyproject(tmp_path) == Settings()


def test_shard_eval_is_true_or_false(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(HEAD + "shard_eval = true\n")
    assert from_pyproject(tmp_path) == Settings(shard_eval=True)
    (tmp_path / "pyproject.toml").write_text(HEAD + "shard_eval = 1\n")
    with pytest.raises(SettingsError, match="true or false"):
        from_pyproject(tmp_path)


def test_shard_eval_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    evaluation = "model = ms.Model(net, nn.MSELoss(), metrics={'acc'})\nmodel.eval(ds.MnistDataset('/t').batch(4))\n"
    (tmp_path / "train.py").write_text(PROGRAM + evaluation)
    assert b"rank_part(" not in run("train.py", "--dry-run").out
    assert (
        b"+model.eval(rank_part(ds.MnistDataset('/t').batch(4)))\n" in run("train.py", "--dry-run", "--shard-eval").out
    )
