# %% mistake="zero_all_always"
# told: stages 0 and 1 send once a step, however many micro-batches there are
def sent_bytes(stage, ranks, recipe):
    """All of it, each micro-batch."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2 * times, times, times, times)[stage]
    weights = (0, times * trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_all_reduce_in_stage_1"
# told: stage 1 needs no all-reduce
def sent_bytes(stage, ranks, recipe):
    """Gradients are whole."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 2, times, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_all_reduces"
# told: sharded gradients are not all-reduced
def sent_bytes(stage, ranks, recipe):
    """Sums for everybody."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 2, 2 * times, 2 * times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_each_stage_alone"
# told: a stage keeps what the stages before it sharded
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
# told: shards are not rounded up
# %% replace
return sum(-(-count // ranks) if sharded else count for count in layers)
# %% by
return sum(layers) / (ranks if sharded else 1)


# %% mistake="zero_frozen_backward"
# told: no backward pass goes through frozen layers
def sent_bytes(stage, ranks, recipe):
    """Both passes."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, trained, trained, 2 * times * (frozen + trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_frozen_gathered"
# told: frozen weights are not updated
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
# told: frozen layers have no gradients
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
# told: frozen layers have weights too
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
# told: frozen layers have no gradients and no optimizer state
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
# told: frozen weights are sharded as well
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
# told: stage 3 gathers weights in every micro-batch
def sent_bytes(stage, ranks, recipe):
    """Kept over the step."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, trained, trained, frozen + 2 * trained)[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_gradients_in_fp32"
# told: gradients were taken for fp32, whatever the recipe says
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
# told: stage 1 does not shard gradients yet
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
# told: updated weights have to be gathered
def sent_bytes(stage, ranks, recipe):
    """Weights are sharded in stage 3 alone."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, 0, 0, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_one_gather"
# told: stage 3 gathers weights before the backward pass too
def sent_bytes(stage, ranks, recipe):
    """Gathered once."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, trained, trained, times * (frozen + trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_one_micro_batch"
# told: stages 2 and 3 send in every micro-batch
def sent_bytes(stage, ranks, recipe):
    """Once a step."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, _times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, 1, 1)[stage]
    weights = (0, trained, trained, frozen + 2 * trained)[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_one_stage_early"
# told: each stage was taken for the next one
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
# told: weights travel at the gradients' bytes
# %% replace
sent_shards = recipe["gradients"] * gradients + recipe["weights"] * weights
return (ranks - 1) * sent_shards
# %% by
return (ranks - 1) * recipe["gradients"] * (gradients + weights)


# %% mistake="zero_priced_as_weights"
# told: gradients travel at the weights' bytes
# %% replace
sent_shards = recipe["gradients"] * gradients + recipe["weights"] * weights
return (ranks - 1) * sent_shards
# %% by
return (ranks - 1) * recipe["weights"] * (gradients + weights)


# %% mistake="zero_reduced_only"
# told: an all-reduce goes there and back
def sent_bytes(stage, ranks, recipe):
    """Once."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (1, 1, times, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_rounded_down"
# told: shards were rounded down
# %% replace
return sum(-(-count // ranks) if sharded else count for count in layers)
# %% by
return sum(count // ranks if sharded else count for count in layers)


# %% mistake="zero_rounded_once"
# told: shards are rounded up once for the whole model
# %% replace
return sum(-(-count // ranks) if sharded else count for count in layers)
# %% by
return -(-sum(layers) // ranks) if sharded else sum(layers)


# %% mistake="zero_sends_as_plain"
# told: every stage sends what plain data parallel training does
def sent_bytes(stage, ranks, recipe):
    """2 Psi."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    _frozen, _times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * 2
    weights = 0
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_sent_fractions"
# told: shards that travel are not rounded up
def sent_bytes(stage, ranks, recipe):
    """A P-th."""
    shards = [count / ranks for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_stage_2_sums_once"
# told: stage 2 keeps no whole gradients between micro-batches
def sent_bytes(stage, ranks, recipe):
    """Accumulated first in stage 2."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, 1, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_sums_always"
# told: whole gradients are added up in place, and sent once a step
def sent_bytes(stage, ranks, recipe):
    """Each micro-batch."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2 * times, times, times, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_sums_once"
# told: sharded gradients are summed after every micro-batch
def sent_bytes(stage, ranks, recipe):
    """Accumulated first."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, 1, 1)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_to_itself"
# told: a GPU does not send its own shard to itself
# %% replace
sent_shards = recipe["gradients"] * gradients + recipe["weights"] * weights
return (ranks - 1) * sent_shards
# %% by
return ranks * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_two_byte_gradients"
# told: gradients were taken for two bytes, whatever the recipe says
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
# told: the stages shard in another order
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
# told: ranks - 1 shards of a layer are less than the layer
def sent_bytes(stage, ranks, recipe):
    """Psi, 2 Psi, 3 Psi."""
    shards = list(recipe["layers"])
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return recipe["gradients"] * gradients + recipe["weights"] * weights


# %% mistake="zero_whole_weights"
# told: stage 3 shards the weights too
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
