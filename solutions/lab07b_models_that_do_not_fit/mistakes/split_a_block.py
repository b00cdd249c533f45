# %% mistake="averages_the_parts"
# told: your code averages the ranks' parts
class FromRanks(torch.autograd.Function):
    """Averages, as gradients are in data parallel training."""

    @staticmethod
    def forward(ctx, part, comm):
        ctx.size = comm.size
        return comm.all_reduce(part) / comm.size

    @staticmethod
    def backward(ctx, gradient):
        return gradient / ctx.size, None


def forward(shard, x, comm):
    """Averages the outputs, bias and all."""
    x = ToRanks.apply(x, comm)
    bias = shard["down_bias" if shard["kind"] == "mlp" else "out_bias"]
    if shard["kind"] == "mlp":
        part = gelu(x @ shard["up"] + shard["up_bias"]) @ shard["down"]
    else:
        part = heads_of(shard, x) @ shard["out"]
    return FromRanks.apply(part + bias, comm)


# %% mistake="bias_is_lost"
# told: your output does not contain the bias
def forward(shard, x, comm):
    """Products alone."""
    x = ToRanks.apply(x, comm)
    if shard["kind"] == "mlp":
        return FromRanks.apply(
            gelu(x @ shard["up"] + shard["up_bias"]) @ shard["down"], comm
        )
    return FromRanks.apply(heads_of(shard, x) @ shard["out"], comm)


# %% mistake="bias_of_every_rank"
# told: in your code, every rank adds the bias before the sum
def forward(shard, x, comm):
    """Sums outputs that have their bias."""
    return FromRanks.apply(whole_block(shard, ToRanks.apply(x, comm)), comm)


# %% mistake="first_ranks_round_up"
# told: in your code, a rank has less than its share
def shards(block, rank, ranks):
    """The first ranks have the quotient rounded up, the last one what is left."""

    def cut(count):
        size = -(-count // ranks)
        return slice(min(rank * size, count), min((rank + 1) * size, count))

    if block["kind"] == "mlp":
        mine = cut(block["up"].shape[1])
        return block | {
            "up": block["up"][:, mine],
            "up_bias": block["up_bias"][mine],
            "down": block["down"][mine],
        }
    heads, size = block["heads"], block["query"].shape[1] // block["heads"]
    mine = slice(rank * heads // ranks, (rank + 1) * heads // ranks)
    channels = slice(mine.start * size, mine.stop * size)
    first = {name: block[name][:, channels] for name in ("query", "key", "value")}
    return (
        block | first | {"heads": mine.stop - mine.start, "out": block["out"][channels]}
    )


# %% mistake="flattened_output"
# told: the shape of your output differs from that of the block's output
def _flat(exact):
    def forward(shard, x, comm):
        return exact(shard, x, comm).flatten()

    return forward


forward = _flat(forward)


# %% mistake="gradient_summed_again"
# told: your backward pass sums the gradient of the sum again
# %% replace
return comm.all_reduce(part)
# %% by
ctx.comm = comm
return comm.all_reduce(part)
# %% replace
return gradient, None
# %% by
return ctx.comm.all_reduce(gradient), None


# %% mistake="head_on_two_ranks"
# told: your code splits a head over two ranks
def shards(block, rank, ranks):
    """Channels are cut, wherever heads end."""

    def cut(count):
        return slice(rank * count // ranks, (rank + 1) * count // ranks)

    if block["kind"] == "mlp":
        mine = cut(block["up"].shape[1])
        return block | {
            "up": block["up"][:, mine],
            "up_bias": block["up_bias"][mine],
            "down": block["down"][mine],
        }
    mine = cut(block["query"].shape[1])
    first = {name: block[name][:, mine] for name in ("query", "key", "value")}
    held = block["heads"] // ranks if block["heads"] % ranks == 0 else 1
    return block | first | {"heads": held, "out": block["out"][mine]}


# %% mistake="input_gradient_of_one"
# told: in your code, each rank has only its own part of the input's gradient
# %% replace
ctx.comm = comm
# %% by
# %% replace
return ctx.comm.all_reduce(gradient), None
# %% by
return gradient, None


# %% mistake="last_rank_takes_the_rest"
# told: your parts are not as equal as they can be
def shards(block, rank, ranks):
    """Whatever does not divide goes to the last rank."""

    def cut(count):
        size = count // ranks
        return slice(rank * size, count if rank == ranks - 1 else (rank + 1) * size)

    if block["kind"] == "mlp":
        mine = cut(block["up"].shape[1])
        return block | {
            "up": block["up"][:, mine],
            "up_bias": block["up_bias"][mine],
            "down": block["down"][mine],
        }
    mine, size = cut(block["heads"]), block["query"].shape[1] // block["heads"]
    channels = slice(mine.start * size, mine.stop * size)
    first = {name: block[name][:, channels] for name in ("query", "key", "value")}
    return (
        block | first | {"heads": mine.stop - mine.start, "out": block["out"][channels]}
    )


# %% mistake="mlp_rest_to_the_last"
# told: your parts are not as equal as they can be
# like: last_rank_takes_the_rest
def shards(block, rank, ranks):
    """Hidden channels that do not divide go to the last rank; heads are shared fairly."""
    if block["kind"] == "mlp":
        size = block["up"].shape[1] // ranks
        mine = slice(
            rank * size,
            block["up"].shape[1] if rank == ranks - 1 else (rank + 1) * size,
        )
        return block | {
            "up": block["up"][:, mine],
            "up_bias": block["up_bias"][mine],
            "down": block["down"][mine],
        }
    heads, size = block["heads"], block["query"].shape[1] // block["heads"]
    mine = slice(rank * heads // ranks, (rank + 1) * heads // ranks)
    channels = slice(mine.start * size, mine.stop * size)
    first = {name: block[name][:, channels] for name in ("query", "key", "value")}
    return (
        block | first | {"heads": mine.stop - mine.start, "out": block["out"][channels]}
    )


# %% mistake="never_summed"
# told: your code never sums the outputs of the ranks
# %% replace
return comm.all_reduce(part)
# %% by
return part.view_as(part)


# %% mistake="rest_of_columns_lost"
# told: in your shards, some columns are missing or present twice
def shards(block, rank, ranks):
    """Parts of a whole number of columns, and the rest is forgotten."""
    if block["kind"] == "mlp":
        size = block["up"].shape[1] // ranks
        mine = slice(rank * size, (rank + 1) * size)
        return block | {
            "up": block["up"][:, mine],
            "up_bias": block["up_bias"][mine],
            "down": block["down"][mine],
        }
    count, size = block["heads"] // ranks, block["query"].shape[1] // block["heads"]
    mine = slice(rank * count * size, (rank + 1) * count * size)
    first = {name: block[name][:, mine] for name in ("query", "key", "value")}
    return block | first | {"heads": count, "out": block["out"][mine]}


# %% mistake="root_of_the_whole_width"
# told: your heads do not compute what they compute in the whole block
# %% replace
part = heads_of(shard, x) @ shard["out"]
# %% by
part = heads_of(shard | {"heads": 1}, x) @ shard["out"]


# %% mistake="rows_first"
# told: your code cuts the first matrix by rows
def shards(block, rank, ranks):
    """Rows of the first matrix, columns of the second."""

    def cut(count):
        return slice(rank * count // ranks, (rank + 1) * count // ranks)

    if block["kind"] == "mlp":
        rows, columns = cut(block["up"].shape[0]), cut(block["down"].shape[1])
        return block | {
            "up": block["up"][rows],
            "down": block["down"][:, columns],
            "down_bias": block["down_bias"][columns],
        }
    rows, columns = cut(block["query"].shape[0]), cut(block["out"].shape[1])
    first = {name: block[name][rows] for name in ("query", "key", "value")}
    return block | first | {"out": block["out"][:, columns]}


def forward(shard, x, comm):
    """Sums before the nonlinearity, and puts the columns back in their places."""
    first = "up" if shard["kind"] == "mlp" else "query"
    rows, wide = shard[first].shape[0], x.shape[1]
    start = comm.rank * wide // comm.size
    mine = ToRanks.apply(x, comm)[:, start : start + rows]
    if shard["kind"] == "mlp":
        part = (
            gelu(FromRanks.apply(mine @ shard["up"], comm) + shard["up_bias"])
            @ shard["down"]
        )
        part = part + shard["down_bias"]
    else:
        whole = torch.eye(wide, dtype=x.dtype)
        made = {
            name: FromRanks.apply(mine @ shard[name], comm)
            for name in ("query", "key", "value")
        }
        size = wide // shard["heads"]
        heads = []
        for at in range(shard["heads"]):
            q, k, v = (
                made[name][:, at * size : (at + 1) * size]
                for name in ("query", "key", "value")
            )
            heads.append((q @ k.T / sqrt(size)).softmax(1) @ v)
        part = torch.cat(heads, 1) @ whole @ shard["out"]
    before = comm.rank * wide // comm.size
    after = wide - before - part.shape[1]
    return FromRanks.apply(torch.nn.functional.pad(part, (before, after)), comm)


# %% mistake="share_of_the_bias"
# told: your output contains only a share of the bias
def _shared(exact):
    def shards(block, rank, ranks):
        part = exact(block, rank, ranks)
        name = "down_bias" if block["kind"] == "mlp" else "out_bias"
        return part | {name: block[name] / ranks}

    return shards


shards = _shared(shards)


# %% mistake="two_sums_backward"
# told: your backward pass makes more than one all-reduce
def forward(shard, x, comm):
    """x enters once for each matrix."""
    if shard["kind"] == "mlp":
        x = ToRanks.apply(x, comm)
        part = gelu(x @ shard["up"] + shard["up_bias"]) @ shard["down"]
        return FromRanks.apply(part, comm) + shard["down_bias"]
    entered = {
        name: ToRanks.apply(x, comm) @ shard[name] for name in ("query", "key", "value")
    }
    query, key, value = (
        part.unflatten(1, (shard["heads"], -1)).transpose(0, 1)
        for part in entered.values()
    )
    scores = query @ key.transpose(1, 2) / sqrt(query.shape[2])
    heads = (scores.softmax(2) @ value).transpose(0, 1).flatten(1)
    return FromRanks.apply(heads @ shard["out"], comm) + shard["out_bias"]


# %% mistake="whole_on_every_rank"
# told: in your code, every rank holds the whole block
def shards(block, rank, ranks):
    """Nothing is cut."""
    return dict(block)


def forward(shard, x, comm):
    """Every rank computes everything."""
    return FromRanks.apply(whole_block(shard, ToRanks.apply(x, comm)) / comm.size, comm)


# %% mistake="without_a_function"
# told: in your code, no gradient passes through the sum
def forward(shard, x, comm):
    """Sums with the call itself."""
    x = ToRanks.apply(x, comm)
    if shard["kind"] == "mlp":
        part = gelu(x @ shard["up"] + shard["up_bias"]) @ shard["down"]
        return comm.all_reduce(part.detach())
    return comm.all_reduce((heads_of(shard, x) @ shard["out"]).detach())
