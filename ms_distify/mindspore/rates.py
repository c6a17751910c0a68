"""How MindSpore's optimizers take their learning rate, as data (read in the wheels of 1.10 and 2.10)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rate:
    """The learning rate of an optimizer class.

    Attributes:
        parameter: the name of the parameter.
        position: its position.
        default: what it is where nothing is passed; None if it must be passed or is no number.
        schedules: whether it may be a table of steps or a schedule.
    """

    parameter: str
    position: int
    default: float | None
    schedules: bool = True


# Parameters of schedules and the like that count steps, with their positions.
STEP_COUNTS: dict[str, tuple[tuple[str, int], ...]] = {
    "cosine_decay_lr": (("total_step", 2), ("step_per_epoch", 3)),
    "exponential_decay_lr": (("total_step", 2), ("step_per_epoch", 3)),
    "natural_exp_decay_lr": (("total_step", 2), ("step_per_epoch", 3)),
    "inverse_decay_lr": (("total_step", 2), ("step_per_epoch", 3)),
    "polynomial_decay_lr": (("total_step", 2), ("step_per_epoch", 3)),
    "warmup_lr": (("total_step", 1), ("step_per_epoch", 2)),
    "piecewise_constant_lr": (("milestone", 0),),
    "CosineDecayLR": (("decay_steps", 2),),
    "ExponentialDecayLR": (("decay_steps", 2),),
    "NaturalExpDecayLR": (("decay_steps", 2),),
    "InverseDecayLR": (("decay_steps", 2),),
    "PolynomialDecayLR": (("decay_steps", 2),),
    "WarmUpLR": (("warmup_steps", 1),),
    "CheckpointConfig": (("save_checkpoint_steps", 0),),
}
_NN_DEFAULTS: dict[str, float | None] = {
    "ASGD": 0.1, "AdaFactor": None, "AdaMax": 0.001, "Adadelta": 1.0, "Adagrad": 0.001, "Adam": 0.001,
    "AdamOffload": 0.001, "AdamWeightDecay": 0.001, "FTRL": 0.001, "Lamb": None, "LazyAdam": 0.001, "Momentum": None,
    "ProximalAdagrad": 0.001, "RMSProp": 0.1, "Rprop": 0.1, "SGD": 0.1, "thor": None,
}  # fmt: skip
# These take the start of their accumulators first.
_THIRD = frozenset({"Adagrad", "FTRL", "ProximalAdagrad"})
_TORCH_DEFAULTS: dict[str, float | None] = {
    "ASGD": 0.01, "Adadelta": 1.0, "Adagrad": 0.01, "Adam": 0.001, "AdamW": 0.001, "Adamax": 0.002, "FusedAdamW": 0.001,
    "NAdam": 0.002, "RAdam": 0.001, "RMSprop": 0.01, "Rprop": 0.01, "SGD": None,
}  # fmt: skip


def rate_of(qualified: str) -> Rate | None:
    """Return how a class takes its learning rate; None for what takes none, as a wrapper of another optimizer.

    Args:
        qualified: the canonical name of an optimizer class.
    """
    head, _, name = qualified.rpartition(".")
    if head == "mindspore.nn" and name in _NN_DEFAULTS:
        return Rate("learning_rate", 2 if name in _THIRD else 1, _NN_DEFAULTS[name], schedules=name != "thor")
    if head in ("mindspore.experimental.optim", "mindspore.mint.optim") and name in _TORCH_DEFAULTS:
        return Rate("lr", 1, _TORCH_DEFAULTS[name], schedules=False)
    return None


__all__ = ["Rate", "rate_of"]
