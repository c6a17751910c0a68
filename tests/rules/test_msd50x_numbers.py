"""C01 and C32: numbers that mean something else on N ranks are noted, and the code is left as it is."""

import pytest
from support import HEAD, TRAINING, found, run

START = HEAD + "ms.set_context(mode=0)\ntrain = ds.MnistDataset('/d').batch(32, drop_remainder=True)\n"


def notes(program: str, code: str) -> list[str]:
    return [f.message for f in run(program).findings if f.code == code and f.status == "noted"]


def test_c01_the_global_batch_is_noted_once_with_its_number() -> None:
    (note,) = notes(START + TRAINING, "MSD501")
    assert "32 x ranks" in note


def test_a_batch_size_through_a_function_is_known_per_call() -> None:
    program = HEAD + (
        "def make(n):\n    return ds.MnistDataset('/d').batch(n, True)\nms.set_context(mode=0)\ntrain = make(16)\n"
    )
    (note,) = notes(program + TRAINING, "MSD501")
    assert "16 x ranks" in note


def test_the_batch_size_of_an_evaluation_is_not_noted() -> None:
    (note,) = notes(START + TRAINING + "model.eval(ds.MnistDataset('/t').batch(100))\n", "MSD501")
    assert "32" in note


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("lr = nn.cosine_decay_lr(0.0, 0.1, train.get_dataset_size() * 10, 10, 10)", id="computed-total"),
        pytest.param("lr = nn.exponential_decay_lr(0.1, 0.9, n, n, 1)", id="unknown-numbers"),
        pytest.param(
            "cfg = ms.CheckpointConfig(save_checkpoint_steps=train.get_dataset_size())", id="checkpoint-steps"
        ),
        pytest.param("lr = my.cosine_decay_lr(0.0, 0.1, 18750, 1875, 10)", id="not-MindSpore's"),
    ],
)
def test_computed_step_counts_follow_by_themselves(line: str) -> None:
    program = HEAD.replace("from mindspore", "import my\nfrom mindspore", 1) + "n = my.n\n" + START[len(HEAD) :]
    kept = [note for note in notes(program + line + "\n" + TRAINING, "MSD502") if "step_per_epoch" not in note]
    assert kept == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param(
            "lr = nn.cosine_decay_lr(0.0, 0.1, total_step=1875 * 10, step_per_epoch=1875, decay_epoch=10)",
            ["total_step=1875 * 10", "step_per_epoch=1875"],
            id="C32-cosine",
        ),
        pytest.param("lr = nn.WarmUpLR(0.1, 500)", ["warmup_steps=500"], id="warm-up"),
        pytest.param("STEPS = 100\nlr = nn.CosineDecayLR(0.0, 0.1, STEPS)", ["decay_steps=STEPS"], id="named-constant"),
        pytest.param(
            "lr = nn.piecewise_constant_lr([100, 200], [0.1, 0.01])", ["milestone=[100, 200]"], id="milestones"
        ),
        pytest.param(
            "c = ms.CheckpointConfig(save_checkpoint_steps=500)", ["save_checkpoint_steps=500"], id="checkpoint"
        ),
    ],
)
def test_literal_step_counts_are_noted(line: str, words: list[str]) -> None:
    result = notes(START + line + "\n" + TRAINING, "MSD502")
    assert len(result) == len(words)
    for note, word in zip(result, words):
        assert word in note
        assert "ranks" in note


def test_evaluating_the_training_data_is_noted() -> None:
    assert found(run(START + TRAINING + "model.eval(train)\n"), "MSD503") == [("noted", 9)]
    apart = START + TRAINING + "model.eval(ds.MnistDataset('/d').batch(32))\n"
    assert found(run(apart), "MSD503") == [("kept", 9)]


def test_c32_batch_normalisation_is_noted_once() -> None:
    program = START + "bn = nn.SequentialCell(nn.BatchNorm2d(8), nn.BatchNorm2d(8))\n" + TRAINING
    (note,) = notes(program, "MSD504")
    assert "SyncBatchNorm" in note


@pytest.mark.parametrize(
    ("line", "noted"),
    [
        pytest.param("loss = nn.MSELoss(reduction='sum')", 1, id="sum"),
        pytest.param("loss = nn.MSELoss()", 0, id="default"),
        pytest.param("loss = nn.MSELoss(reduction='mean')", 0, id="mean"),
        pytest.param("how = 'sum'\nloss = ms.ops.cross_entropy(a, b, reduction=how)", 1, id="function"),
        pytest.param("loss = mine(reduction='sum')", 0, id="not-MindSpore's"),
    ],
)
def test_losses_that_sum_are_noted(line: str, noted: int) -> None:
    assert len(notes(START + line + "\n" + TRAINING, "MSD505")) == noted
