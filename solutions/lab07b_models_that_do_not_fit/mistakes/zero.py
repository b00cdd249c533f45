# %% mistake="zero_all_always"
# told: in your answer, stages 0 and 1 send data in every micro-batch instead of once per step
# why: your answer multiplies the bytes of these stages by the number of micro-batches
# next: accumulate gradients on each GPU, and send them once per step
def sent_bytes(stage, ranks, recipe):
    """All of it, each micro-batch."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2 * times, times, times, times)[stage]
    weights = (0, times * trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_all_reduce_in_stage_1"
# told: in your answer, stage 1 uses an all-reduce, which it does not need
# why: in your stage 1, every rank receives all of the sums
# next: which rank updates a shard, and so needs the shard's gradients?
def sent_bytes(stage, ranks, recipe):
    """Gradients are whole."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 2, times, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_all_reduces"
# told: your answer all-reduces sharded gradients
# why: in your stages 1 to 3, every rank receives all of the sums
# next: which rank needs the summed gradients of a shard?
def sent_bytes(stage, ranks, recipe):
    """Sums for everybody."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 2, 2 * times, 2 * times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_each_stage_alone"
# told: in your answer, a stage does not shard what the previous stages shard
# why: your stage 2 holds the whole optimizer state again
# next: let each stage also shard what the previous stages shard
def held_bytes(stage, ranks, recipe):
    """One part a stage."""
    trained = recipe["layers"][recipe["frozen"] :]

    def held(layers, sharded):
        return sum(-(-count // ranks) if sharded else count for count in layers)

    return (
        recipe["weights"] * held(recipe["layers"], stage >= 3)
        + recipe["gradients"] * held(trained, stage == 2)
        + recipe["optimizer"] * held(trained, stage == 1)
    )


# %% mistake="zero_fractions"
# told: your answer does not round shards up
# why: in your answer, a shard can have a fraction of a parameter
# next: round up: all shards of a layer have the same whole number of parameters
# %% replace
return sum(-(-count // ranks) if sharded else count for count in layers)
# %% by
return sum(layers) / (ranks if sharded else 1)


# %% mistake="zero_frozen_backward"
# told: your answer gathers the weights of frozen layers for a backward pass
# why: but no backward pass goes through these layers
# next: where does the backward pass end?
def sent_bytes(stage, ranks, recipe):
    """Both passes."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, trained, trained, 2 * times * (frozen + trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_frozen_gathered"
# told: your answer gathers the weights of frozen layers after the update
# why: your stages 1 and 2 send these weights as well
# next: which weights does the update change?
def sent_bytes(stage, ranks, recipe):
    """All weights."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, frozen + trained, frozen + trained, times * (frozen + 2 * trained))[
        stage
    ]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_frozen_gradients"
# told: in your answer, frozen layers have gradients
# why: your held bytes include the gradients of all layers
# next: where does the backward pass end?
def held_bytes(stage, ranks, recipe):
    """No state, but gradients."""
    trained = recipe["layers"][recipe["frozen"] :]

    def held(layers, sharded):
        return sum(-(-count // ranks) if sharded else count for count in layers)

    return (
        recipe["weights"] * held(recipe["layers"], stage >= 3)
        + recipe["gradients"] * held(recipe["layers"], stage >= 2)
        + recipe["optimizer"] * held(trained, stage >= 1)
    )


# %% mistake="zero_frozen_left_out"
# told: your answer leaves out the weights of frozen layers
# why: your answer counts only the weights of the trained layers
# next: count these weights as well: the forward pass goes through frozen layers
def held_bytes(stage, ranks, recipe):
    """What is trained."""
    trained = recipe["layers"][recipe["frozen"] :]

    def held(layers, sharded):
        return sum(-(-count // ranks) if sharded else count for count in layers)

    return (
        recipe["weights"] * held(trained, stage >= 3)
        + recipe["gradients"] * held(trained, stage >= 2)
        + recipe["optimizer"] * held(trained, stage >= 1)
    )


# %% mistake="zero_frozen_updated"
# told: your answer counts frozen layers as if they were trained
# why: your held bytes include the frozen layers' gradients and optimizer state
# next: what is kept of a layer that is not updated?
def held_bytes(stage, ranks, recipe):
    """All layers alike."""
    recipe["layers"][recipe["frozen"] :]

    def held(layers, sharded):
        return sum(-(-count // ranks) if sharded else count for count in layers)

    return (
        recipe["weights"] * held(recipe["layers"], stage >= 3)
        + recipe["gradients"] * held(recipe["layers"], stage >= 2)
        + recipe["optimizer"] * held(recipe["layers"], stage >= 1)
    )


# %% mistake="zero_frozen_whole"
# told: your answer does not shard the weights of frozen layers
# why: your stage 3 holds these weights whole on every GPU
# next: shard all weights in stage 3, trained or not
def held_bytes(stage, ranks, recipe):
    """What is trained is sharded."""
    trained = recipe["layers"][recipe["frozen"] :]
    frozen = recipe["layers"][: recipe["frozen"]]

    def held(layers, sharded):
        return sum(-(-count // ranks) if sharded else count for count in layers)

    return (
        recipe["weights"] * (held(frozen, False) + held(trained, stage >= 3))
        + recipe["gradients"] * held(trained, stage >= 2)
        + recipe["optimizer"] * held(trained, stage >= 1)
    )


# %% mistake="zero_gathers_once"
# told: in your answer, stage 3 gathers weights for only one micro-batch
# why: the number of micro-batches makes no difference to the weights that your stage 3 sends
# next: where would whole weights be kept until the next micro-batch?
def sent_bytes(stage, ranks, recipe):
    """Kept over the step."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, trained, trained, frozen + 2 * trained)[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_gradients_in_fp32"
# told: your answer always counts gradients in fp32
# why: your answer counts 4 bytes for every gradient, even if the recipe gives another size
# next: use recipe['gradients'] bytes per parameter
def held_bytes(stage, ranks, recipe):
    """As in a deck."""
    trained = recipe["layers"][recipe["frozen"] :]

    def held(layers, sharded):
        return sum(-(-count // ranks) if sharded else count for count in layers)

    return (
        recipe["weights"] * held(recipe["layers"], stage >= 3)
        + 4 * held(trained, stage >= 2)
        + recipe["optimizer"] * held(trained, stage >= 1)
    )


# %% mistake="zero_gradients_in_stage_1"
# told: in your answer, stage 1 already shards gradients
# why: your stage 1 already holds only a shard of the gradients
# next: what does each stage shard in addition to the previous one?
def held_bytes(stage, ranks, recipe):
    """The optimizer's, and what it reads."""
    trained = recipe["layers"][recipe["frozen"] :]

    def held(layers, sharded):
        return sum(-(-count // ranks) if sharded else count for count in layers)

    return (
        recipe["weights"] * held(recipe["layers"], stage >= 3)
        + recipe["gradients"] * held(trained, stage >= 1)
        + recipe["optimizer"] * held(trained, stage >= 1)
    )


# %% mistake="zero_never_gathers"
# told: your answer never gathers updated weights in stages 1 and 2
# why: your stages 1 and 2 send only gradients
# next: each GPU has updated only its own shard: how does it get the other shards?
def sent_bytes(stage, ranks, recipe):
    """Weights are sharded in stage 3 alone."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, 0, 0, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_one_gather"
# told: in your answer, stage 3 does not gather weights again before the backward pass
# why: your stage 3 sends weights for only one of the two passes
# next: what happens to the gathered weights after the forward pass?
def sent_bytes(stage, ranks, recipe):
    """Gathered once."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, trained, trained, times * (frozen + trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_one_micro_batch"
# told: in your answer, stages 2 and 3 send data for only one micro-batch
# why: the number of micro-batches makes no difference to what your stages 2 and 3 send
# next: where would whole gradients or weights be kept until the next micro-batch?
def sent_bytes(stage, ranks, recipe):
    """Once a step."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, _times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, 1, 1)[stage]
    weights = (0, trained, trained, frozen + 2 * trained)[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_one_stage_early"
# told: your answer treats each stage as the next stage
# why: your stage 0 holds what stage 1 should hold
# next: start with stage 0, which shards nothing
def held_bytes(stage, ranks, recipe):
    """Counted from one."""
    trained = recipe["layers"][recipe["frozen"] :]

    def held(layers, sharded):
        return sum(-(-count // ranks) if sharded else count for count in layers)

    return (
        recipe["weights"] * held(recipe["layers"], stage >= 2)
        + recipe["gradients"] * held(trained, stage >= 1)
        + recipe["optimizer"] * held(trained, True)
    )


# %% mistake="zero_priced_as_gradients"
# told: your answer counts weights with the gradients' bytes per parameter
# why: recipe['weights'] makes no difference to your result of sent_bytes()
# next: use each part's own number of bytes per parameter
# %% replace
sent_shards = recipe["gradients"] * gradients + recipe["weights"] * weights
return (ranks - 1) * sent_shards
# %% by
return (ranks - 1) * recipe["gradients"] * (gradients + weights)


# %% mistake="zero_priced_as_weights"
# told: your answer counts gradients with the weights' bytes per parameter
# why: recipe['gradients'] makes no difference to your result of sent_bytes()
# next: use each part's own number of bytes per parameter
# %% replace
sent_shards = recipe["gradients"] * gradients + recipe["weights"] * weights
return (ranks - 1) * sent_shards
# %% by
return (ranks - 1) * recipe["weights"] * (gradients + weights)


# %% mistake="zero_reduced_only"
# told: your answer counts only half of the all-reduce
# why: your stage 0 sends half of what it should send
# next: count both halves: a reduce-scatter, then an all-gather
def sent_bytes(stage, ranks, recipe):
    """Once."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (1, 1, times, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_rounded_down"
# told: your answer rounds shards down
# why: with shards rounded down, the last parameters of a layer are on no GPU
# next: round up, so that every parameter is on a GPU
# %% replace
return sum(-(-count // ranks) if sharded else count for count in layers)
# %% by
return sum(count // ranks if sharded else count for count in layers)


# %% mistake="zero_rounded_once"
# told: your answer rounds up once for the whole model, not once for each layer
# why: your answer adds up the layers' parameters before it cuts them into shards
# next: cut each layer separately
# %% replace
return sum(-(-count // ranks) if sharded else count for count in layers)
# %% by
return -(-sum(layers) // ranks) if sharded else sum(layers)


# %% mistake="zero_sends_as_plain"
# told: in your answer, every stage sends what plain data parallel training sends
# why: your stages 1 to 3 send as much as stage 0
# next: how does a GPU get the weights that it has not updated itself, or does not hold?
def sent_bytes(stage, ranks, recipe):
    """2 Psi."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    _frozen, _times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * 2
    weights = 0
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_sent_fractions"
# told: your answer does not round up the shards that are sent
# why: in your answer, a shard can have a fraction of a parameter
# next: round up: all shards of a layer have the same whole number of parameters
def sent_bytes(stage, ranks, recipe):
    """A P-th."""
    shards = [count / ranks for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_stage_2_sums_once"
# told: in your answer, stage 2 sends gradients only once per step
# why: but a GPU in stage 2 has no full-size gradient buffer between micro-batches
# next: where would full gradients be kept until the next micro-batch?
def sent_bytes(stage, ranks, recipe):
    """Accumulated first in stage 2."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, 1, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_sums_always"
# told: in your answer, stages 0 and 1 send gradients in every micro-batch
# why: but each GPU can add up whole gradients until the end of the step
# next: accumulate gradients, and send them once per step
def sent_bytes(stage, ranks, recipe):
    """Each micro-batch."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2 * times, times, times, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_sums_once"
# told: in your answer, stages 2 and 3 send gradients only once per step
# why: but sharded gradients must be summed after every micro-batch
# next: where would whole gradients be kept until the next micro-batch?
def sent_bytes(stage, ranks, recipe):
    """Accumulated first."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, 1, 1)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_to_itself"
# told: your answer counts a GPU's own shard as sent
# why: each of your numbers of sent bytes is `ranks / (ranks - 1)` times what it should be
# next: how many of the shards go through a GPU's link?
# %% replace
sent_shards = recipe["gradients"] * gradients + recipe["weights"] * weights
return (ranks - 1) * sent_shards
# %% by
return ranks * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_two_byte_gradients"
# told: your answer always counts 2 bytes per gradient
# why: recipe['gradients'] makes no difference to your result of held_bytes()
# next: use recipe['gradients'] bytes per parameter
def held_bytes(stage, ranks, recipe):
    """bf16."""
    trained = recipe["layers"][recipe["frozen"] :]

    def held(layers, sharded):
        return sum(-(-count // ranks) if sharded else count for count in layers)

    return (
        recipe["weights"] * held(recipe["layers"], stage >= 3)
        + 2 * held(trained, stage >= 2)
        + recipe["optimizer"] * held(trained, stage >= 1)
    )


# %% mistake="zero_weights_first"
# told: in your answer, the stages shard the parts in the wrong order
# why: your answer shards the weights first and the optimizer state last
# next: shard the largest part first
def held_bytes(stage, ranks, recipe):
    """As they are listed."""
    trained = recipe["layers"][recipe["frozen"] :]

    def held(layers, sharded):
        return sum(-(-count // ranks) if sharded else count for count in layers)

    return (
        recipe["weights"] * held(recipe["layers"], stage >= 1)
        + recipe["gradients"] * held(trained, stage >= 2)
        + recipe["optimizer"] * held(trained, stage >= 3)
    )


# %% mistake="zero_whole_layers_sent"
# told: in your answer, whole layers are sent instead of `ranks - 1` shards
# why: for each collective, your answer counts all parameters of a layer
# next: count `ranks - 1` shards, each rounded up
def sent_bytes(stage, ranks, recipe):
    """Psi, 2 Psi, 3 Psi."""
    shards = list(recipe["layers"])
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return recipe["gradients"] * gradients + recipe["weights"] * weights


# %% mistake="zero_whole_weights"
# told: in your answer, stage 3 does not shard the weights
# why: your stage 3 holds the weights whole on every GPU
# next: what does a GPU hold of a layer's weights between two passes?
def held_bytes(stage, ranks, recipe):
    """Weights are needed."""
    trained = recipe["layers"][recipe["frozen"] :]

    def held(layers, sharded):
        return sum(-(-count // ranks) if sharded else count for count in layers)

    return (
        recipe["weights"] * held(recipe["layers"], False)
        + recipe["gradients"] * held(trained, stage >= 2)
        + recipe["optimizer"] * held(trained, stage >= 1)
    )


# %% mistake="zero_one_stage_early_from_1"
# told: your answer treats stages 1 and 2 as stages 2 and 3
# why: your answer shards gradients from stage 1 on, and weights from stage 2 on
# next: shard the optimizer state first, then gradients, then weights
# %% replace
return (
    recipe["weights"] * held(recipe["layers"], stage >= 3)
    + recipe["gradients"] * held(trained, stage >= 2)
    + recipe["optimizer"] * held(trained, stage >= 1)
)
# %% by
return (
    recipe["weights"] * held(recipe["layers"], stage >= 2)
    + recipe["gradients"] * held(trained, stage >= 1)
    + recipe["optimizer"] * held(trained, stage >= 1)
)


# %% mistake="zero_frozen_optimizer"
# told: in your answer, frozen layers have optimizer state
# why: but frozen layers are never updated
# next: leave out the optimizer state of frozen layers
# %% replace
return (
    recipe["weights"] * held(recipe["layers"], stage >= 3)
    + recipe["gradients"] * held(trained, stage >= 2)
    + recipe["optimizer"] * held(trained, stage >= 1)
)
# %% by
return (
    recipe["weights"] * held(recipe["layers"], stage >= 3)
    + recipe["gradients"] * held(trained, stage >= 2)
    + recipe["optimizer"] * held(recipe["layers"], stage >= 1)
)


# %% mistake="zero_last_layers_frozen"
# told: your answer treats the last layers as frozen instead of the first layers
# why: your answer leaves out the gradients and optimizer state of the last `frozen` layers
# next: count `layers[frozen:]` as trained
# %% replace
trained = recipe["layers"][recipe["frozen"] :]
# %% by
trained = recipe["layers"][: len(recipe["layers"]) - recipe["frozen"]]


# %% mistake="zero_whole_padded"
# told: your answer pads parts that are not sharded
# why: your answer counts these parts as `ranks` times a shard
# next: where nothing is sharded, count only the layers' own parameters
# %% replace
return sum(-(-count // ranks) if sharded else count for count in layers)
# %% by
return sum(-(-count // ranks) * (1 if sharded else ranks) for count in layers)
