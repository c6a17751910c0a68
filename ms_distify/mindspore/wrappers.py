"""What is known about libraries that wrap MindSpore's datasets and trainers, as data.

Read from their released sources: mindcv 0.1.1 to 0.3.0 (and 0.0.1-beta), mindnlp 0.1.1 to 0.5.1, mindformers 1.x and
2.1, mindyolo 0.5. Of mindcv it is known what its functions build, so they are followed; of the others it is known why
what they do is not what one card does, which refusals say.
"""

from __future__ import annotations

from typing import Any

CREATE_DATASET = "mindcv.data.create_dataset"
CREATE_LOADER = "mindcv.data.create_loader"
CREATE_TRAINER = "mindcv.utils.create_trainer"
CREATE_OPTIMIZER = "mindcv.optim.create_optimizer"
STATE_MONITOR = "mindcv.utils.StateMonitor"
_FOLLOWED = (CREATE_DATASET, CREATE_LOADER, CREATE_TRAINER, CREATE_OPTIMIZER, STATE_MONITOR)

# Functions that build a dataset and hand num_shards and shard_id on to MindSpore's class for it, whatever `name` says
# (MNIST, CIFAR, a folder of images; with num_samples to a DistributedSampler; with num_aug_repeats to a sampler that
# deals alike). In the form of catalog.json; the slots are the same in all releases.
DATASETS: dict[str, list[dict[str, Any]]] = {
    CREATE_DATASET: [{"params": [
        "name=''", "root=None", "split='train'", "shuffle=True", "num_samples=None", "num_shards=None", "shard_id=None",
        "num_parallel_workers=None", "download=False", "**kwargs"]}],
}  # fmt: skip
# Functions that map and batch the dataset they are given first, and give it back: where they are told the batch size and
# whether to drop the last batch.
LOADERS = {CREATE_LOADER: (("batch_size", 1), ("drop_remainder", 2))}
# Functions that give a mindspore.Model.
MODELS = frozenset({CREATE_TRAINER})
# Those that give one of MindSpore's optimizers, or one that inherits from them.
OPTIMIZERS = frozenset({CREATE_OPTIMIZER})
# Modules of mindcv that build no network.
_WITHOUT_NETWORKS = ("mindcv.data.", "mindcv.loss.", "mindcv.optim.", "mindcv.scheduler.", "mindcv.utils.")

# Packages that build and distribute training by themselves, and what stands against following them.
_OWN = "distributes by itself or has shard parameters of its own; use those"
LIBRARIES = {
    "mindcv": "is not followed; of mindcv, create_dataset, create_loader and create_trainer are",
    "mindformers": "starts ranks only where its configuration says use_parallel, and then cuts the model as its parallel "
    "settings say; set them there and start it with msrun",
    "mindyolo": "shuffles by another seed on each rank, so that shards overlap; its own train.py takes --is_parallel True",
    "mindocr": _OWN,
    **dict.fromkeys(("mindface", "mindone", "mindelec", "mindflow", "mindspore_gl", "mindaudio", "mindvideo", "mindpet",
                     "mindspore_lightning", "tinyms"), _OWN),
    "mindnlp": "deals no rows over the ranks up to 0.3, and evaluation data too in 0.4; train with mindspore.Model or a "
    "loop of your own",
}  # fmt: skip
# What is known of single functions.
FUNCTIONS = {
    CREATE_LOADER: "is given no dataset here",
    "mindnlp.load_dataset": "takes no shard parameters in any release; give what datasets.load_dataset reads to a "
    "GeneratorDataset",
}


def canonical(qualified: str) -> str:
    """Return the one spelling of a function of mindcv that is exported by several modules; other names unchanged.

    >>> canonical("mindcv.data.dataset_factory.create_dataset")
    'mindcv.data.create_dataset'
    """
    head, _, last = qualified.rpartition(".")
    for known in _FOLLOWED:
        home, _, name = known.rpartition(".")
        if last == name and (head == "mindcv" or head == home or head.startswith(home + ".")):
            return known
    if last == "load_dataset" and head in ("mindnlp.dataset", "mindnlp.dataset.load"):
        return "mindnlp.load_dataset"
    return qualified


def is_wrapper(qualified: str) -> bool:
    """Whether a name belongs to one of the libraries."""
    return qualified.partition(".")[0] in LIBRARIES


def trouble(qualified: str) -> str:
    """Return why what comes out of a library's function is not dealt over the ranks."""
    return FUNCTIONS.get(qualified) or LIBRARIES[qualified.partition(".")[0]]


def may_normalise(qualified: str) -> bool:
    """Whether calling a function of mindcv may build a network, most of which have batch normalisation."""
    if not qualified.startswith("mindcv.") or "()" in qualified or qualified.startswith(_WITHOUT_NETWORKS):
        return False
    last = qualified.rpartition(".")[2]
    return last == "create_model" or not last.startswith("create_")
