from support import HEAD, TRAINING, converted


def test_baseline() -> None:
    out = converted(HEAD + 'ms.set_context(mode=0)\ntrain = ds.MnistDataset("/d").batch(8)\n' + TRAINING)
    assert 'ds.MnistDataset("/d", num_shards=rank_size, shard_id=rank_id)' in out
