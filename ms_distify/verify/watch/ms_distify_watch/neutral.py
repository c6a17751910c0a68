"""Changes in a run that make it comparable with another, and let it run on the device that is there.

What differs between one card and N ranks for good reasons is taken out: dropout, which draws masks of each rank's own, batch
normalisation, which keeps statistics of each rank's own batch, and random augmentation, after which rows cannot be
recognised. What was changed is recorded.
"""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import Any

from .after import Actions
from .log import Log

# Random operations on images, with the arguments that let them do nothing, or the same every time.
_STILL: dict[str, dict[str, Any]] = {
    "RandomHorizontalFlip": {"prob": 0.0},
    "RandomHorizontalFlipWithBBox": {"prob": 0.0},
    "RandomVerticalFlip": {"prob": 0.0},
    "RandomVerticalFlipWithBBox": {"prob": 0.0},
    "RandomResizedCrop": {"scale": (1.0, 1.0), "ratio": (1.0, 1.0)},
    "RandomResizedCropWithBBox": {"scale": (1.0, 1.0), "ratio": (1.0, 1.0)},
    "RandomCropDecodeResize": {"scale": (1.0, 1.0), "ratio": (1.0, 1.0)},
    "RandomRotation": {"degrees": (0, 0)},
    "RandomColorAdjust": {"brightness": (1, 1), "contrast": (1, 1), "saturation": (1, 1), "hue": (0, 0)},
    "RandomColor": {"degrees": (1.0, 1.0)},
    "RandomSharpness": {"degrees": (1.0, 1.0)},
    "RandomAdjustSharpness": {"prob": 0.0},
    "RandomPosterize": {"bits": (8, 8)},
    "RandomErasing": {"prob": 0.0},
    "RandomGrayscale": {"prob": 0.0},
    "RandomInvert": {"prob": 0.0},
    "RandomAutoContrast": {"prob": 0.0},
    "RandomEqualize": {"prob": 0.0},
    "RandomPerspective": {"prob": 0.0},
    "RandomLighting": {"alpha": 0.0},
    "RandomApply": {"prob": 0.0},
}
# What only some devices know.
_OF_ASCEND = ("ascend_config", "jit_config", "max_device_memory", "variable_memory_max_size", "enable_graph_kernel",
              "graph_kernel_flags", "auto_tune_mode", "aoe_tune_mode", "enable_reduce_precision", "gpu_config",
              "memory_optimize_level", "op_timeout", "enable_auto_mixed_precision")  # fmt: skip


def install(config: dict[str, Any], log: Log, actions: Actions) -> None:
    """Change what has to be changed."""
    said: set[str] = set()

    def say(what: str) -> None:
        if what not in said:
            said.add(what)
            log.write("changed", what=what)

    if not config["as_is"]:
        actions.after("mindspore.nn.layer.basic", lambda module: _no_dropout(module, say))
        actions.after("mindspore.nn.layer.normalization", lambda module: _fixed_statistics(module, say))
        for name in ("transforms", "c_transforms", "py_transforms"):
            actions.after(f"mindspore.dataset.vision.{name}", lambda module: _no_augmentation(module, say))
    if config["device"]:
        _Device(config["device"], say).watch(actions)
    if config["seed"] is not None:
        actions.after("mindspore", lambda module: _seed(module, config["seed"]))


def _seed(module: ModuleType, seed: int) -> None:
    """Seed what a program leaves unseeded; one that seeds by itself overrides it."""
    import random

    import numpy as np

    module.set_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


def _bound(original: Any, args: Any, kwargs: Any, replaced: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    bound = inspect.signature(original).bind_partial(*args, **kwargs)
    bound.arguments.update({name: value for name, value in replaced.items() if name in bound.signature.parameters})
    return bound.args, bound.kwargs


def _replace_arguments(cls: Any, replaced: dict[str, Any], say: Any, what: str) -> None:
    original = cls.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        say(what)
        args, kwargs = _bound(original, (self, *args), kwargs, replaced)
        original(*args, **kwargs)

    cls.__init__ = __init__


def _no_dropout(module: ModuleType, say: Any) -> None:
    for name in ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d"):
        cls = getattr(module, name, None)
        if cls is not None and "__init__" in vars(cls):
            _replace_arguments(cls, {"p": 0.0}, say, "dropout is off")


def _fixed_statistics(module: ModuleType, say: Any) -> None:
    cls = module._BatchNorm
    original = cls.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.use_batch_statistics = False
        say("batch normalisation keeps the statistics it starts with")

    cls.__init__ = __init__


def _no_augmentation(module: ModuleType, say: Any) -> None:
    for name, replaced in _STILL.items():
        cls = getattr(module, name, None)
        if isinstance(cls, type):
            _replace_arguments(cls, replaced, say, "random augmentation is off")
    if isinstance(getattr(module, "RandomCrop", None), type) and isinstance(getattr(module, "CenterCrop", None), type):
        _crop_the_middle(module, say)


def _crop_the_middle(module: ModuleType, say: Any) -> None:
    original = module.RandomCrop

    def crop(size: Any, *args: Any, **kwargs: Any) -> Any:
        say("random augmentation is off")
        return module.CenterCrop(size)

    module.RandomCrop = functools.wraps(original, updated=())(crop)  # type: ignore[attr-defined]


def _replace_sinking(cls: Any, name: str, say: Any) -> None:
    original = getattr(cls, name)
    signature = inspect.signature(original)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.arguments.get("dataset_sink_mode"):
            say("dataset_sink_mode is False, so that reads and steps are seen")
            bound.arguments["dataset_sink_mode"] = False
            if "sink_size" in bound.arguments:
                bound.arguments["sink_size"] = -1
        return original(*bound.args, **bound.kwargs)

    setattr(cls, name, call)


class _Device:
    """Lets a program that names another device run on the one that is there."""

    def __init__(self, device: str, say: Any) -> None:
        self.device, self.say = device, say

    def watch(self, actions: Actions) -> None:
        actions.after("mindspore.context", self._context)
        actions.after("mindspore.device_manager", self._device)
        actions.after("mindspore.train.model", self._model)
        actions.after("mindspore", self._default)

    def _default(self, module: ModuleType) -> None:
        # A program that names no device would get another where this MindSpore has one.
        if module.get_context("device_target") != self.device:
            module.set_context(device_target=self.device)

    def _context(self, module: ModuleType) -> None:
        original = module.set_context

        @functools.wraps(original)
        def set_context(**kwargs: Any) -> Any:
            asked = kwargs.get("device_target")
            if asked not in (None, self.device):
                self.say(f"device_target is {self.device} instead of {asked}")
                kwargs["device_target"] = self.device
            if self.device == "CPU":
                kwargs.pop("device_id", None)
                for name in _OF_ASCEND:
                    if kwargs.pop(name, None) is not None:
                        self.say(f"set_context({name}=...) is left out")
            return original(**kwargs)

        module.set_context = set_context  # type: ignore[attr-defined]

    def _device(self, module: ModuleType) -> None:
        original = module.set_device

        @functools.wraps(original)
        def set_device(device_target: str, device_id: Any = None) -> Any:
            if device_target != self.device:
                self.say(f"device_target is {self.device} instead of {device_target}")
            if self.device == "CPU":
                return original("CPU")
            return original(self.device, device_id) if device_id is not None else original(self.device)

        module.set_device = set_device  # type: ignore[attr-defined]

    def _model(self, module: ModuleType) -> None:
        if self.device != "CPU":
            # CPUs know no data sinking; elsewhere it reads past everything that is watched.
            for name in ("train", "fit", "eval"):
                if name in vars(module.Model):
                    _replace_sinking(module.Model, name, self.say)
            return
        original = module.Model.__init__

        @functools.wraps(original)
        def __init__(this: Any, *args: Any, **kwargs: Any) -> None:
            if kwargs.get("amp_level", "O0") != "O0":
                self.say("amp_level is O0, as CPUs need it")
                kwargs["amp_level"] = "O0"
            original(this, *args, **kwargs)

        module.Model.__init__ = __init__
