"""The source of the functions that are put into users' files."""

from __future__ import annotations

from ..mindspore import names
from .number_helpers import BATCH, RATE, WARMUP

_SAMPLED = '''\
def {name}(dataset, num_shards=None, shard_id=None):
    """Let each rank read its share of the rows that the dataset's sampler yields; on one card all of them."""
    if num_shards is not None:
        dataset.add_sampler({sampler}(num_shards, shard_id, shuffle=False))
    return dataset
'''

_SOURCE = '''\
def {name}(source, num_shards=None, shard_id=None):
    """Give each rank its row of every complete group of num_shards rows; on one card the source itself."""
    if num_shards is None:
        return source
    if isinstance(source, {types}.GeneratorType):
        start = {itertools}.tee(source, 1)[0].__copy__  # every epoch reads it from its beginning
    else:
        start = source.__iter__ if hasattr(source, "__iter__") else source

    class RankRows:
        def __iter__(self):
            for group in zip(*[iter(start())] * num_shards):
                yield group[shard_id]

    if hasattr(source, "__len__"):
        RankRows.__len__ = lambda self: len(source) // num_shards
    return RankRows()
'''

_DRAWN = '''\
def {name}(source, num_shards=None, shard_id=None):
    """Give each rank its row of every num_shards rows that the source draws; on one card the source itself."""
    if num_shards is None:
        return source

    class RankRows:
        def __getitem__(self, index):
            return [source[index] for _ in range(num_shards)][shard_id]

        def __len__(self):
            return len(source) // num_shards

    return RankRows()
'''

_WAIT = '''\
def {name}(what, timeout=7200):
    """Let no rank go on before rank 0 is here, too; on one card go on at once. All ranks share the working folder.

    A rank that waits keeps touching a file; rank 0 takes it away when it sees that it is being touched.
    """
    rank, size = int({os}.getenv("RANK_ID", "0")), int({os}.getenv("RANK_SIZE", "1"))
    if size == 1:
        return
    end = {time}.monotonic() + timeout
    for other in range(1, size) if rank == 0 else [rank]:
        flag = f".rank_{{other}}_waits_for_rank_0.{{{os}.getenv('MS_SCHED_PORT', '')}}"
        if rank != 0:
            {os}.close({os}.open(flag, {os}.O_CREAT | {os}.O_WRONLY, 0o644))
        touched = None
        while True:
            if {time}.monotonic() > end:
                if rank != 0:
                    {os}.unlink(flag)
                missing = f"rank {{other}}" if rank == 0 else f"rank 0 {{what}}"
                raise TimeoutError(f"rank {{rank}} waited {{timeout}} s for {{missing}} (by files in {{{os}.getcwd()}})")
            try:
                if rank != 0:
                    {os}.utime(flag)
                elif touched not in (None, {os}.stat(flag).st_mtime_ns):
                    {os}.unlink(flag)
                    break
                else:
                    touched = {os}.stat(flag).st_mtime_ns
            except FileNotFoundError:
                if rank != 0:
                    break
            {time}.sleep(0.2)
'''

_SAME = '''\
def {name}(value):
    """Return the value of rank 0 on every rank, by a file in the working folder; on one card the value itself."""
    make = value if callable(value) else lambda: value
    if int({os}.getenv("RANK_SIZE", "1")) == 1:
        return make()
    path = f".value_of_rank_0.{{{os}.getenv('MS_SCHED_PORT', '')}}"
    if {os}.getenv("RANK_ID", "0") == "0":
        with open(path + ".new", "wb") as file:
            {pickle}.dump(make(), file)
        {os}.replace(path + ".new", path)
    {wait}("to say what all ranks call their files")
    with open(path, "rb") as file:
        value = {pickle}.load(file)
    {wait}("to see that all ranks know what it calls its files")
    if {os}.getenv("RANK_ID", "0") == "0":
        {os}.remove(path)
    return value
'''

_SUM = '''\
def {name}(*values, mean=False):
    """Add up numbers over all ranks, or average them; on one card they stay as they are.

    Ranks exchange the bits of the numbers, so that whole numbers up to 2**53 come out exactly, and all ranks get the
    same.
    """
    size = int({os}.getenv("RANK_SIZE", "1"))
    if size == 1:
        return values if len(values) > 1 else values[0]
    sent = []
    for value in values:
        kind = 2 if isinstance(value, {Tensor}) else int(hasattr(value, "dtype"))
        whole = isinstance(value, int) or "int" in str(getattr(value, "dtype", "")).lower()
        sent += [kind, int(whole), *{struct}.unpack("2i", {struct}.pack("d", float(value)))]
    got = {AllGather}()({Tensor}(sent, {int32})).asnumpy().tolist()
    ranks = [got[start : start + len(sent)] for start in range(0, len(got), len(sent))]
    results = []
    for at in range(0, len(sent), 4):
        kind = max(rank[at] for rank in ranks)
        whole = all(rank[at + 1] for rank in ranks) and not mean
        total = sum({struct}.unpack("d", {struct}.pack("2i", *rank[at + 2 : at + 4]))[0] for rank in ranks)
        result = int(total) if whole else total / size if mean else total
        if kind > 0:
            result = {Tensor}(result, {int64} if whole else {float32} if kind == 2 else {float64})
        results.append(result.asnumpy()[()] if kind == 1 else result)
    return results if len(results) > 1 else results[0]
'''

_BATCHES = '''\
def {name}(batches):
    """Give each of N ranks every N-th batch; on one card all of them."""
    rank, size = int({os}.getenv("RANK_ID", "0")), int({os}.getenv("RANK_SIZE", "1"))
    return {islice}(batches, rank, None, size) if size > 1 else batches
'''

_PART = '''\
def {name}(dataset):
    """Give each rank its share of a dataset's batches; all of them where there are fewer than ranks, or one card."""
    rank, size = int({os}.getenv("RANK_ID", "0")), int({os}.getenv("RANK_SIZE", "1"))
    batches = dataset.get_dataset_size() if size > 1 else 0
    if batches < size:
        return dataset
    first, last = batches * rank // size, batches * (rank + 1) // size
    share = {deepcopy}(dataset).skip(first)
    return share if last == batches else share.take(last - first)
'''

_METRICS = '''\
def {name}(metrics):
    """Let metrics count over the batches of all ranks when they are asked; on one card they are as they were."""
    if int({os}.getenv("RANK_SIZE", "1")) == 1:
        return metrics
    if not isinstance(metrics, dict):  # a set, which each process would go through in an order of its own
        metrics = {{key: {get_metric_fn}(key) for key in sorted(metrics)}}
    sums = ("_correct_num", "_total_num", "_samples_num", "_sum_loss", "_abs_error_sum", "_squared_error_sum")
    for metric in metrics.values():

        def over_ranks(metric=metric, own=metric.eval):
            counted = {{key: value for key, value in vars(metric).items() if key in sums}}
            if len(counted) != 2:
                raise RuntimeError(f"{{type(metric).__name__}} of this MindSpore does not count as others do")
            vars(metric).update(zip(counted, {sum}(*counted.values())))
            try:
                return own()
            finally:
                vars(metric).update(counted)

        metric.eval = over_ranks
    return metrics
'''

# Of each helper: its name, its source, what it uses of libraries, and the other helpers it calls.
KINDS: dict[str, tuple[str, str, dict[str, str], dict[str, str]]] = {
    "wait": ("wait_for_rank_0", _WAIT, {"os": "os", "time": "time"}, {}),
    "same": ("same_on_all_ranks", _SAME, {"os": "os", "pickle": "pickle"}, {"wait": "wait"}),
    "sampled": ("shard_sampled", _SAMPLED, {"sampler": names.DISTRIBUTED_SAMPLER}, {}),
    "source": ("shard_source", _SOURCE, {"types": "types", "itertools": "itertools"}, {}),
    "drawn": ("shard_draws", _DRAWN, {}, {}),
    "batch": ("batch_per_rank", BATCH, {}, {}),
    "rate": ("scale_learning_rate", RATE, {"schedule": names.LR_SCHEDULE, "tensor": names.TENSOR}, {}),
    "warmup": (
        "warm_up_learning_rate",
        WARMUP,
        {"schedule": names.LR_SCHEDULE, "tensor": names.TENSOR, "minimum": names.MINIMUM},
        {},
    ),
    "sum": (
        names.SUM_HELPER,
        _SUM,
        {
            "os": "os",
            "struct": "struct",
            "Tensor": names.TENSOR,
            "AllGather": names.ALL_GATHER,
            **{kind: f"mindspore.{kind}" for kind in ("int32", "int64", "float32", "float64")},
        },
        {},
    ),
    "batches": ("rank_batches", _BATCHES, {"os": "os", "islice": "itertools.islice"}, {}),
    "part": ("rank_part", _PART, {"os": "os", "deepcopy": "copy.deepcopy"}, {}),
    "metrics": (
        names.METRICS_HELPER,
        _METRICS,
        {"os": "os", "get_metric_fn": "mindspore.nn.get_metric_fn"},
        {"sum": "sum"},
    ),
}

__all__ = ["KINDS"]
