"""Every qualified name of MindSpore (and around it) that ms-distify recognises, once.

Names are compared in canonical form: where MindSpore offers a thing under several modules
(``mindspore.context.set_context`` and ``mindspore.set_context``), one of them stands for all.
"""

from __future__ import annotations

from . import catalog, wrappers

SET_CONTEXT = "mindspore.set_context"
SET_DEVICE = "mindspore.set_device"
CONTEXT_CALLS = frozenset({SET_CONTEXT, SET_DEVICE})
SET_PARALLEL = "mindspore.set_auto_parallel_context"
RESET_PARALLEL = "mindspore.reset_auto_parallel_context"
SET_SEED = "mindspore.set_seed"
PARALLEL_MODE = "mindspore.ParallelMode"
GET_PARALLEL = "mindspore.get_auto_parallel_context"
GRAPH_MODE = "mindspore.GRAPH_MODE"
INIT = "mindspore.communication.init"
GET_RANK = "mindspore.communication.get_rank"
GET_GROUP_SIZE = "mindspore.communication.get_group_size"
CELL = "mindspore.nn.Cell"
MODEL = "mindspore.Model"
# What gives one.
MODELS = frozenset({MODEL}) | wrappers.MODELS
TENSOR = "mindspore.Tensor"
PARAMETER = "mindspore.Parameter"
LOAD_CHECKPOINT = "mindspore.load_checkpoint"
LOAD = "mindspore.load"
LOAD_PARAM_INTO_NET = "mindspore.load_param_into_net"
SAVE_CHECKPOINT = "mindspore.save_checkpoint"
MODEL_CHECKPOINT = "mindspore.ModelCheckpoint"
CHECKPOINT_CONFIG = "mindspore.CheckpointConfig"
EXPORT = "mindspore.export"
IDENTITY = "mindspore.nn.Identity"
CONTEXT = "mindspore.context"
LR_SCHEDULE = "mindspore.nn.learning_rate_schedule.LearningRateSchedule"
MINIMUM = "mindspore.ops.Minimum"
# The callback that sets the learning rate of a step.
RATE_SCHEDULER = "mindspore.LearningRateScheduler"
DATASET = "mindspore.dataset"
DATASET_SEED = "mindspore.dataset.config.set_seed"
DATASET_WORKERS = "mindspore.dataset.config.set_num_parallel_workers"
BATCH_NORMS = tuple(f"mindspore.nn.BatchNorm{suffix}" for suffix in ("1d", "2d", "3d", ""))
LOSSES = ("mindspore.nn.", "mindspore.ops.", "mindspore.mint.")
# What computes at once and so needs a device.
OPERATORS = ("mindspore.ops.", "mindspore.numpy.")
# Calls that give back a function that runs their first argument; only partial binds further ones.
PARTIAL = "functools.partial"
COMPILED = frozenset({"mindspore.jit", "mindspore.ms_function", "mindspore.lazy_inline", "mindspore.data_sink"})
DATA_SINK = "mindspore.data_sink"
# Calls that hand on the dataset they are given.
DATASET_HELPERS = frozenset({"mindspore.DatasetHelper", "mindspore.connect_network_with_dataset"})
# Calls that give a train cell, which averages its gradients itself.
BUILDS_TRAIN_CELL = frozenset({"mindspore.amp.build_train_network", "mindspore.build_train_network"})
GRAD_REDUCER = "mindspore.nn.DistributedGradReducer"
DISTRIBUTED_SAMPLER = "mindspore.dataset.DistributedSampler"
GENERATOR_DATASET = "mindspore.dataset.GeneratorDataset"
PK_SAMPLER = "mindspore.dataset.PKSampler"
# Samplers that draw; MindDataset, under a DistributedSampler, draws the same in every epoch (measured, 2.10).
RANDOM_SAMPLERS = frozenset({"mindspore.dataset.RandomSampler", "mindspore.dataset.SubsetRandomSampler"})
DATASET_ZIP = frozenset({"mindspore.dataset.zip", "mindspore.dataset.ZipDataset"})
FILE_WRITER = "mindspore.mindrecord.FileWriter"

# Calls that make a gradient function by hand: nothing reduces what they give.
VALUE_AND_GRAD = frozenset({"mindspore.value_and_grad", "mindspore.ops.value_and_grad"})
GRAD = frozenset({"mindspore.grad", "mindspore.ops.grad"})
GRAD_OPERATION = "mindspore.ops.GradOperation"
FORWARD_VALUE_AND_GRAD = "mindspore.nn.ForwardValueAndGrad"
GRADIENT_CALLS = VALUE_AND_GRAD | GRAD | {GRAD_OPERATION, FORWARD_VALUE_AND_GRAD}
# What gives a list of parameters.
PARAMETER_LISTS = frozenset({"trainable_params", "get_parameters", "untrainable_params", "ParameterTuple", "list", "tuple",
                             "group_params"})  # fmt: skip
# Attributes that hold one.
PARAMETER_ATTRIBUTES = frozenset({"parameters", "weights", "params"})
# What changes a weight without an optimizer: operators (with those that start with "Apply"), methods.
UPDATES = frozenset(
    {"assign", "assign_add", "assign_sub", "Assign", "AssignAdd", "AssignSub", "set_data", "assign_value"}
)
ALL_REDUCE = "mindspore.ops.AllReduce"
ALL_GATHER = "mindspore.ops.AllGather"
# The function that sums numbers over the ranks, which is put into programs; and what calling it counts as.
METRICS_HELPER = "metrics_over_ranks"
SUM_HELPER, OVER_RANKS = "sum_over_ranks", "ms-distify.sum_over_ranks"
# Metrics that are sums over batches, divided at the end: how a Model is told, and the classes.
SUMMED_METRICS = frozenset({"accuracy", "acc", "loss", "mae", "mse", "top_1_accuracy", "top_5_accuracy"})
SUMMED_METRIC_CLASSES = frozenset({"Accuracy", "Loss", "MAE", "MSE", "TopKCategoricalAccuracy",
                                   "Top1CategoricalAccuracy", "Top5CategoricalAccuracy"})  # fmt: skip
METRIC_MODULES = ("mindspore.nn.", "mindspore.", "mindspore.metrics.", "mindspore.nn.metrics.")
MULTITYPE = "mindspore.ops.MultitypeFuncGraph"
PLATEAU = "mindspore.experimental.optim.lr_scheduler.ReduceLROnPlateau"
# What nn.TrainOneStepCell and its relatives have without the subclass setting it.
INHERITED = {"grad": GRAD_OPERATION, "optimizer": "mindspore.nn.Optimizer", "grad_reducer": GRAD_REDUCER}

# Objects that write files, and the parameter that names where: (parameter, its position).
WRITER_DIRECTORIES: dict[str, tuple[str, int | None]] = {
    MODEL_CHECKPOINT: ("directory", 1),
    "mindspore.SummaryCollector": ("summary_dir", 0),
    "mindspore.SummaryRecord": ("log_dir", 0),
}

# What tells one rank from another.
# Settings of set_context that may be said behind init: the device once more, and what each compilation reads anew.
MAY_COME_LATER = frozenset({"mode", "device_target", "device_id", "save_graphs", "save_graphs_path", "check_bprop",
                            "pynative_synchronize", "reserve_class_name_in_scope", "print_file_path"})  # fmt: skip
RANK_CALLS = frozenset({GET_RANK, GET_GROUP_SIZE, "mindspore.communication.get_local_rank"})
RANK_VARIABLES = frozenset({"RANK_ID", "RANK_SIZE", "DEVICE_ID", "DEVICE_NUM", "MS_NODE_ID", "LOCAL_RANK",
                            "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"})  # fmt: skip
# What tells how many ranks there are, and not which one this is.
SIZE_SOURCES = frozenset({GET_GROUP_SIZE, "RANK_SIZE", "DEVICE_NUM", "OMPI_COMM_WORLD_SIZE"})
# Random generators that take a fresh seed from the system where they are given none.
UNSEEDED = frozenset({"numpy.random.default_rng", "numpy.random.RandomState", "random.Random", "random.SystemRandom"})
# Draws from the generators that whole modules share, without those that give a generator or its state.
PYTHON_DRAWS = frozenset({f"random.{name}" for name in (
    "betavariate", "choice", "choices", "expovariate", "gauss", "getrandbits", "lognormvariate", "normalvariate",
    "randint", "random", "randrange", "sample", "shuffle", "triangular", "uniform", "vonmisesvariate")})  # fmt: skip
NUMPY_DRAWS = frozenset({f"numpy.random.{name}" for name in (
    "beta", "binomial", "choice", "dirichlet", "exponential", "gamma", "laplace", "multinomial",
    "multivariate_normal", "normal", "permutation", "poisson", "rand", "randint", "randn", "random",
    "random_integers", "random_sample", "ranf", "sample", "shuffle", "standard_normal", "uniform")})  # fmt: skip
# What draws from NumPy's shared generator unless it is told random_state.
NUMPY_SPLITS = frozenset(
    {"sklearn.model_selection.train_test_split", "sklearn.utils.shuffle", "sklearn.utils.resample"}
)
# Those that choose or order things.
CHOOSING = frozenset({"choice", "choices", "permutation", "sample", "shuffle"})
PYTHON_SEED, NUMPY_SEED = "random.seed", "numpy.random.seed"
# What differs from process to process.
VARYING_CALLS = frozenset({"time.time", "time.time_ns", "time.perf_counter", "os.getpid", "os.urandom", "uuid.uuid4",
                           "uuid.uuid1", "datetime.datetime.now", "random.randint", "random.random",
                           "random.randrange", "random.getrandbits", "numpy.random.randint",
                           "secrets.randbelow"})  # fmt: skip

# Progress bars that take ``disable``.
PROGRESS_BARS = frozenset({"tqdm", "tqdm.tqdm", "tqdm.trange", "tqdm.auto.tqdm", "tqdm.auto.trange", "tqdm.notebook.tqdm",
                           "tqdm.autonotebook.tqdm", "tqdm.std.tqdm", "tqdm.rich.tqdm"})  # fmt: skip

# Dataset methods that give an iterator over the rows, not a dataset.
ITERATORS = frozenset({"create_tuple_iterator", "create_dict_iterator"})

# Dataset methods that put a sampler on a dataset.
SAMPLER_METHODS = frozenset({"use_sampler", "add_sampler"})
# Methods of library objects that are asked for.
METHODS = frozenset({"train", "fit", "eval", "build", "step", "construct"})

_PREFIXES = (
    ("mindspore.communication.management.", "mindspore.communication."),
    ("mindspore.communication._comm_helper.", "mindspore.communication."),
    ("mindspore.context.", "mindspore."),
    ("mindspore.parallel._utils.", "mindspore."),
    ("mindspore.common.api.", "mindspore."),
    ("mindspore.common.seed.", "mindspore."),
    ("mindspore.common.parameter.", "mindspore."),
    ("mindspore.common.tensor.", "mindspore."),
    ("mindspore.common.initializer.", "mindspore.common.initializer."),
    ("mindspore.common.", "mindspore."),
    ("mindspore.train.serialization.", "mindspore."),
    ("mindspore.train.callback.", "mindspore."),
    ("mindspore.train.model.", "mindspore."),
    ("mindspore.train.summary.", "mindspore."),
    ("mindspore.train.data_sink.", "mindspore."),
    ("mindspore.train.dataset_helper.", "mindspore."),
    ("mindspore.train.amp.", "mindspore.amp."),
    ("mindspore.train.", "mindspore."),
    ("mindspore.ops.composite.base.", "mindspore.ops."),
    ("mindspore.ops.composite.", "mindspore.ops."),
    ("mindspore.ops.functional.", "mindspore.ops."),
    ("mindspore.ops.operations.", "mindspore.ops."),
    ("mindspore.nn.wrap.grad_reducer.", "mindspore.nn."),
    ("mindspore.nn.wrap.cell_wrapper.", "mindspore.nn."),
    ("mindspore.nn.wrap.loss_scale.", "mindspore.nn."),
    ("mindspore.nn.wrap.", "mindspore.nn."),
    ("mindspore.nn.optim.", "mindspore.nn."),
    ("mindspore.nn.cell.", "mindspore.nn."),
    ("mindspore.nn.layer.", "mindspore.nn."),
    ("mindspore.nn.loss.loss.", "mindspore.nn."),
    ("mindspore.nn.loss.", "mindspore.nn."),
    ("mindspore.nn.learning_rate_schedule.", "mindspore.nn."),
    ("mindspore.nn.dynamic_lr.", "mindspore.nn."),
)
# Modules of which every part but the last name may be left out.
_NN_FILES = ("mindspore.nn.", "mindspore.dataset.")
_KEPT = ("mindspore.nn.probability.", "mindspore.dataset.vision.", "mindspore.dataset.transforms.",
         "mindspore.dataset.text.", "mindspore.dataset.audio.", "mindspore.dataset.dataloader.")  # fmt: skip


def canonical(qualified: str) -> str:
    """Return the one spelling under which a qualified name is known here; other names unchanged.

    >>> canonical("mindspore.context.set_context")
    'mindspore.set_context'
    """
    if not qualified.startswith("mindspore."):
        return wrappers.canonical(qualified) if wrappers.is_wrapper(qualified) else qualified
    for prefix, short in _PREFIXES:
        if qualified.startswith(prefix) and len(qualified) > len(prefix):
            qualified = short + qualified[len(prefix) :]
            break
    head, _, last = qualified.rpartition(".")
    if (head + ".").startswith(_NN_FILES) and not (head + ".").startswith(_KEPT):
        if head.startswith("mindspore.dataset") and last in catalog.dataset_names() | catalog.sampler_names():
            return f"mindspore.dataset.{last}"
        if head.startswith("mindspore.nn") and (
            catalog.is_optimizer(last) or catalog.is_train_cell(last) or catalog.is_cell(last)
        ):
            return f"mindspore.nn.{last}"
    return qualified


def is_summed_metric(qualified: str) -> bool:
    """Whether a canonical name is one of MindSpore's metrics that are sums over batches."""
    head, _, last = qualified.rpartition(".")
    return head + "." in METRIC_MODULES and last in SUMMED_METRIC_CLASSES


def is_optimizer(qualified: str) -> bool:
    """Whether a canonical name is one of MindSpore's optimizer classes, or gives one."""
    if qualified in wrappers.OPTIMIZERS:
        return True
    return qualified.startswith("mindspore.") and catalog.is_optimizer(qualified)


def is_train_cell(qualified: str) -> bool:
    """Whether a canonical name is a MindSpore cell that takes and reduces gradients by itself."""
    return qualified.startswith("mindspore.") and catalog.is_train_cell(qualified) and qualified not in GRADIENT_CALLS


def is_cell(qualified: str) -> bool:
    """Whether a canonical name is a class that builds a Cell."""
    return qualified.startswith("mindspore.") and (qualified == CELL or catalog.is_cell(qualified))


def is_lr_schedule(qualified: str) -> bool:
    """Whether a canonical name is one of MindSpore's learning-rate schedules."""
    return qualified.startswith("mindspore.") and catalog.is_lr_schedule(qualified)


def is_sampler(qualified: str) -> bool:
    """Whether a name is a sampler class of ``mindspore.dataset``."""
    return qualified.startswith("mindspore.dataset.") and qualified.endswith("Sampler")


def dataset_class(qualified: str) -> str | None:
    """Return the name under which ``catalog.dataset`` knows what builds a dataset; None for other canonical names."""
    if qualified in wrappers.DATASETS:
        return qualified
    head, _, last = qualified.rpartition(".")
    return last if head == "mindspore.dataset" and last in catalog.dataset_names() else None


# -- files (MSD401 to MSD405) ----------------------------------------------------------------------------------------

CALLBACK = "mindspore.Callback"
WRITER_DIRECTORIES.update({
    "tensorboardX.SummaryWriter": ("logdir", 0),
    "tensorboardX.writer.SummaryWriter": ("logdir", 0),
    "torch.utils.tensorboard.SummaryWriter": ("log_dir", 0),
    "visualdl.LogWriter": ("logdir", 0),
    "mindspore.Profiler": ("output_path", None), "mindspore.profiler.Profiler": ("output_path", None),
    "mindspore.profiler.profiling.Profiler": ("output_path", None),
})  # fmt: skip
# Where they write unless told otherwise, if not into the current folder.
WRITER_DEFAULTS = {name: "./data" for name in WRITER_DIRECTORIES if name.endswith(".Profiler")}
# Objects that write into a folder with the process in its name.
WRITES_BY_PROCESS = frozenset({"mindspore.profiler.profile", "mindspore.profiler.tensorboard_trace_handler"})
# What records a run on a server, and can be told not to: (parameter, what it is told).
TRACKERS = {"wandb.init": ("mode", "disabled"), "swanlab.init": ("mode", "disabled")}
# Functions that open a file: (parameter of the path, of the mode); both come first, in this order.
OPENERS = {
    "open": ("file", "mode"), "io.open": ("file", "mode"), "codecs.open": ("filename", "mode"),
    "gzip.open": ("filename", "mode"), "bz2.open": ("filename", "mode"), "lzma.open": ("filename", "mode"),
}  # fmt: skip
# What logs to a file: (parameter of the path, its position; None: by keyword alone).
LOGGERS = {
    "logging.FileHandler": ("filename", 0), "logging.basicConfig": ("filename", None),
    "logging.handlers.WatchedFileHandler": ("filename", 0),
}  # fmt: skip
# Those that rename their file must not be given the null device: the other ranks get a file of their own.
ROTATING = {
    "logging.handlers.RotatingFileHandler": ("filename", 0),
    "logging.handlers.TimedRotatingFileHandler": ("filename", 0),
    "loguru.logger.add": ("sink", 0),
}
# Functions that write the file their argument names and give nothing that is needed: (parameter, its position).
SAVERS = {
    "numpy.save": ("file", 0), "numpy.savez": ("file", 0), "numpy.savez_compressed": ("file", 0),
    "numpy.savetxt": ("fname", 0), "matplotlib.pyplot.savefig": ("fname", 0), "matplotlib.pyplot.imsave": ("fname", 0),
    "cv2.imwrite": ("filename", 0), "imageio.imwrite": ("uri", 0), "imageio.imsave": ("uri", 0),
    "skimage.io.imsave": ("fname", 0), "scipy.io.savemat": ("file_name", 0), "scipy.misc.imsave": ("name", 0),
    "scipy.sparse.save_npz": ("file", 0), "joblib.dump": ("filename", 1), "os.remove": ("path", 0),
    "os.unlink": ("path", 0), "os.chmod": ("path", 0), "scipy.io.wavfile.write": ("filename", 0), "soundfile.write": ("file", 0),
}  # fmt: skip
# Those that copy and move files: (parameter of the new place, its position).
COPIES = {
    **{f"shutil.{name}": ("dst", 1) for name in ("copy", "copy2", "copyfile", "copytree", "move")},
    "os.rename": ("dst", 1), "os.replace": ("dst", 1), "os.symlink": ("dst", 1), "os.link": ("dst", 1),
    "shutil.make_archive": ("base_name", 0),
}  # fmt: skip
SAVERS.update(COPIES)
# What leaves nothing to be read, or changes nothing that is read.
REMOVERS = frozenset({"os.remove", "os.unlink", "os.chmod"})
# What runs a command, of which nobody sees what it writes.
COMMANDS = frozenset({"os.system", "os.popen", *(f"subprocess.{name}" for name in (
    "run", "call", "check_call", "check_output", "Popen", "getoutput", "getstatusoutput"))})  # fmt: skip
# The same as methods of objects that are known by the method's name: of figures, data frames, paths.
SAVE_METHODS = {"savefig": 0, "to_csv": 0, "to_excel": 0, "to_pickle": 0, "to_parquet": 0, "to_feather": 0, "to_hdf": 0,
                "tofile": 0, "write_text": None, "write_bytes": None}  # fmt: skip
# Objects that write a file and cannot be had without one.
FILE_OBJECTS = frozenset({"h5py.File", "pandas.ExcelWriter", "xlsxwriter.Workbook", "cv2.VideoWriter",
                          "imageio.get_writer", "sqlite3.connect"})  # fmt: skip
# Functions that read the file their argument names: (parameter, its position).
READERS = {
    "numpy.load": ("file", 0), "numpy.loadtxt": ("fname", 0), "numpy.genfromtxt": ("fname", 0),
    "numpy.fromfile": ("file", 0), "pandas.read_csv": ("filepath_or_buffer", 0), "pandas.read_excel": ("io", 0),
    "pandas.read_pickle": ("filepath_or_buffer", 0), "cv2.imread": ("filename", 0), "PIL.Image.open": ("fp", 0),
    "matplotlib.pyplot.imread": ("fname", 0), "scipy.io.loadmat": ("file_name", 0), "joblib.load": ("filename", 0),
    "scipy.sparse.load_npz": ("file", 0), "mindspore.dataset.MindDataset": ("dataset_files", 0),
    "mindspore.dataset.CSVDataset": ("dataset_files", 0), "mindspore.dataset.TextFileDataset": ("dataset_files", 0),
    "mindspore.dataset.TFRecordDataset": ("dataset_files", 0),
}  # fmt: skip
# Functions that read what a folder holds.
FOLDER_READERS = {
    "os.listdir": ("path", 0), "os.scandir": ("path", 0), "os.walk": ("top", 0), "glob.glob": ("pathname", 0),
    "glob.iglob": ("pathname", 0), "mindspore.dataset.ImageFolderDataset": ("dataset_dir", 0),
}  # fmt: skip
# Those of them that read the folders within it, too.
DEEP_READERS = frozenset({"os.walk", "glob.glob", "glob.iglob", "mindspore.dataset.ImageFolderDataset"})
# Functions that are given a path and read nothing from there.
PATH_FUNCTIONS = frozenset({
    "print", "str", "repr", "len", "isinstance", "format", "os.makedirs", "os.mkdir", "os.remove", "os.unlink",
    "shutil.rmtree", "pathlib.Path", "logging.info", "logging.warning", "logging.debug", "logging.getLogger", *(
        f"os.path.{name}" for name in ("join", "dirname", "basename", "abspath", "exists", "isfile", "isdir",
                                       "splitext", "split", "realpath", "expanduser", "normpath"))})  # fmt: skip
PATH_METHODS = frozenset({"info", "warning", "debug", "error", "log", "format", "write", "append", "join", "replace",
                          "split", "add_argument", "setFormatter", "addHandler"})  # fmt: skip
# What is written once for all ranks to read.
PREPARES = frozenset({
    FILE_WRITER, *(f"mindspore.mindrecord.{name}" for name in (
        "Cifar10ToMR", "Cifar100ToMR", "CsvToMR", "ImageNetToMR", "MnistToMR", "TFRecordToMR")),
})  # fmt: skip
FETCHES = frozenset({"urllib.request.urlretrieve", "download.download", "mindvision.dataset.DownLoad", "wget.download",
                     "gdown.download", "zipfile.ZipFile", "tarfile.open", "shutil.unpack_archive"})  # fmt: skip
# What looks at the files there are, which change while other ranks run.
FILE_STATE = frozenset({"os.path.exists", "os.path.isfile", "os.path.isdir", "os.path.getsize", "os.path.getmtime",
                        "os.listdir", "os.scandir", "os.walk", "os.access", "os.stat", "glob.glob", "glob.iglob"})  # fmt: skip
FILE_STATE_METHODS = frozenset({"exists", "is_file", "is_dir", "iterdir", "glob", "rglob", "stat"})
CLOCKS = frozenset({"time.time", "time.time_ns", "time.strftime", "time.ctime", "time.localtime", "time.asctime",
                    "datetime.datetime.now", "datetime.datetime.today", "datetime.datetime.utcnow",
                    "datetime.now", "uuid.uuid4", "uuid.uuid1", "random.randint", "random.random"})  # fmt: skip
# Folders that are new whenever they are asked for.
TEMPORARY = frozenset({"tempfile.mkdtemp"})
# What gives each process a place of its own.
OWN_PLACES = frozenset({"os.getpid", "tempfile.mkdtemp", "tempfile.mkstemp", "tempfile.NamedTemporaryFile", "uuid.uuid4",
                        "uuid.uuid1", "tempfile.TemporaryDirectory"})  # fmt: skip
# What changes the process itself, which goes on with it.
OF_PROCESS = frozenset({"os.chdir", "os.fchdir", "os.putenv", "os.unsetenv", "random.seed", "random.setstate",
                        "numpy.random.seed", "numpy.random.set_state", SET_SEED,
                        "mindspore.set_context", "mindspore.set_device"})  # fmt: skip
# What every rank must take part in.
COLLECTIVES = frozenset(f"mindspore.ops.{name}" for name in (
    "AllReduce", "AllGather", "ReduceScatter", "Broadcast", "AlltoAll", "NeighborExchange", "Barrier"))  # fmt: skip
