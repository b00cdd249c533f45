# exercise: split_a_block
# told: every rank holds the whole block
def shards(block, rank, ranks):
    """Nothing is cut."""
    return dict(block)


def forward(shard, x, comm):
    """Every rank computes everything."""
    return FromRanks.apply(whole_block(shard, ToRanks.apply(x, comm)) / comm.size, comm)
