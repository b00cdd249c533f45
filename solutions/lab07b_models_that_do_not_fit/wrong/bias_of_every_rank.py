# exercise: split_a_block
# told: every rank adds the bias before the sum
def forward(shard, x, comm):
    """Sums outputs that have their bias."""
    return FromRanks.apply(whole_block(shard, ToRanks.apply(x, comm)), comm)
