# exercise: split_a_block
# told: the output has another shape than the block's
def _flat(exact):
    def forward(shard, x, comm):
        return exact(shard, x, comm).flatten()

    return forward


forward = _flat(forward)
