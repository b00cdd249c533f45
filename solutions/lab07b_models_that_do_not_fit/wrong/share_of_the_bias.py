# exercise: split_a_block
# told: only a share of the output's bias is added
def _shared(exact):
    def shards(block, rank, ranks):
        part = exact(block, rank, ranks)
        name = "down_bias" if block["kind"] == "mlp" else "out_bias"
        return part | {name: block[name] / ranks}

    return shards


shards = _shared(shards)
