"""The functions that are put into the user's file for batch sizes and learning rates."""

BATCH = '''\
def {name}(global_batch, num_shards=None):
    """Return a rank's part of a batch that is given for all ranks together; on one card the whole of it."""
    if num_shards is None:
        return global_batch
    if global_batch % num_shards:
        raise ValueError(f"a batch of {{global_batch}} cannot be divided among {{num_shards}} ranks")
    return global_batch // num_shards
'''

RATE = '''\
def {name}(learning_rate, rank_size=None):
    """Return a learning rate (number, table of steps, schedule) times rank_size; on one card as it is."""
    if rank_size is None or rank_size == 1:
        return learning_rate

    class Scaled({schedule}):
        def __init__(self):
            super().__init__()
            self.schedule, self.factor = learning_rate, float(rank_size)

        def construct(self, global_step):
            return self.schedule(global_step) * self.factor

    if isinstance(learning_rate, {schedule}):
        return Scaled()
    if isinstance(learning_rate, {tensor}):
        return {tensor}(learning_rate.asnumpy() * rank_size, learning_rate.dtype)
    if hasattr(learning_rate, "__iter__"):
        return [rate * rank_size for rate in learning_rate]
    return learning_rate * rank_size
'''

WARMUP = '''\
def {name}(learning_rate, rank_size, dataset, epochs):
    """Let a learning rate (number, table of steps, schedule) rise to rank_size times itself; on one card as it is.

    It rises in a straight line over the steps of the first epochs of the dataset, which is a rank's part.
    """
    if rank_size is None or rank_size == 1:
        return learning_rate
    steps = epochs * dataset.get_dataset_size()
    rates = learning_rate.asnumpy().tolist() if isinstance(learning_rate, {tensor}) else learning_rate

    class Scaled({schedule}):
        def __init__(self):
            super().__init__()
            self.scheduled = isinstance(rates, {schedule})
            self.rate = rates if self.scheduled else float(rates)
            self.steps, self.more, self.limit = float(steps), float(rank_size - 1), {minimum}()

        def construct(self, global_step):
            rate = self.rate
            if self.scheduled:
                rate = self.rate(global_step)
            return rate * (1.0 + self.more * self.limit(global_step / self.steps, 1.0))

    if hasattr(rates, "__iter__"):
        return [rate * (1 + (rank_size - 1) * min(step / steps, 1)) for step, rate in enumerate(rates)]
    return Scaled()
'''
