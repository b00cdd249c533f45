# %% mistake="zero_all_always"
# told: stages 0 and 1 send once a step, however many micro-batches there are
# why: stages 0 and 1 sent in every micro-batch
# next: gradient accumulation
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
# why: it sent the sums to everybody
# next: who updates a shard, and who needs its gradients?
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
# why: stages 1 to 3 sent the sums to everybody
# next: who needs the sum of a shard's gradients?
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
# why: stage 2 holds the optimizer's whole state again
# next: stages add up
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
# why: a layer was divided by the ranks with fractions
# next: all shards of a layer are equally long, and whole
# %% replace
return sum(-(-count // ranks) if sharded else count for count in layers)
# %% by
return sum(layers) / (ranks if sharded else 1)


# %% mistake="zero_frozen_backward"
# told: no backward pass goes through frozen layers
# why: their weights were gathered for it
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
# told: frozen weights are not updated
# why: stages 1 and 2 gathered them
# next: which weights have changed?
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
# why: theirs were counted
# next: the backward pass ends above them
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
# why: they were left out
# next: the forward pass goes through them
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
# why: they were counted as if they were trained
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
# told: frozen weights are sharded as well
# why: stage 3 holds them whole
# next: weights are weights, trained or not
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
# why: they were gathered for one
# next: where would whole weights wait for the next micro-batch?
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
# why: four bytes a parameter
# next: recipe['gradients']
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
# why: its gradients came as shards
# next: what does each stage add to the one before?
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
# why: stages 1 and 2 send gradients alone
# next: each GPU has updated its own shard: who has the others?
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
# why: they were sent for one pass alone
# next: what happened to the gathered weights after the forward pass?
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
# why: one micro-batch was counted
# next: where would whole gradients, or whole weights, wait for the next micro-batch?
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
# why: stage 0 holds what stage 1 should
# next: stage 0 shards nothing
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
# why: recipe['weights'] makes no difference
# next: each part at its own bytes
# %% replace
sent_shards = recipe["gradients"] * gradients + recipe["weights"] * weights
return (ranks - 1) * sent_shards
# %% by
return (ranks - 1) * recipe["gradients"] * (gradients + weights)


# %% mistake="zero_priced_as_weights"
# told: gradients travel at the weights' bytes
# why: recipe['gradients'] makes no difference
# next: each part at its own bytes
# %% replace
sent_shards = recipe["gradients"] * gradients + recipe["weights"] * weights
return (ranks - 1) * sent_shards
# %% by
return (ranks - 1) * recipe["weights"] * (gradients + weights)


# %% mistake="zero_reduced_only"
# told: an all-reduce goes there and back
# why: stage 0 sends half of it
# next: reduce and scatter, then gather
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
# why: the last parameters of a layer are on no GPU
# next: every parameter is on one
# %% replace
return sum(-(-count // ranks) if sharded else count for count in layers)
# %% by
return sum(count // ranks if sharded else count for count in layers)


# %% mistake="zero_rounded_once"
# told: shards are rounded up once for the whole model
# why: its layers were added up before they were cut
# next: each layer is cut separately
# %% replace
return sum(-(-count // ranks) if sharded else count for count in layers)
# %% by
return -(-sum(layers) // ranks) if sharded else sum(layers)


# %% mistake="zero_sends_as_plain"
# told: every stage sends what plain data parallel training does
# why: stages 1 to 3 came as stage 0
# next: weights that a GPU has not updated itself, or does not hold, have to come from somewhere
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
# why: a layer was divided by the ranks with fractions
# next: all shards of a layer are equally long, and whole
def sent_bytes(stage, ranks, recipe):
    """A P-th."""
    shards = [count / ranks for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_stage_2_sums_once"
# told: stage 2 has no full-size gradient buffer between micro-batches
# why: it sent them once a step
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
# told: whole gradients are added up in place, and sent once a step
# why: stages 0 and 1 sent them in every micro-batch
# next: gradient accumulation
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
# why: stages 2 and 3 sent them once a step
# next: where would whole gradients wait for the next micro-batch?
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
# why: every number is ranks / (ranks - 1) times what it should be
# next: how many of the shards go through a GPU's link?
# %% replace
sent_shards = recipe["gradients"] * gradients + recipe["weights"] * weights
return (ranks - 1) * sent_shards
# %% by
return ranks * (recipe["gradients"] * gradients + recipe["weights"] * weights)


# %% mistake="zero_two_byte_gradients"
# told: gradients were taken for two bytes, whatever the recipe says
# why: they do not depend on recipe['gradients']
# next: recipe['gradients']
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
# why: weights are sharded first and the optimizer last
# next: the largest part first
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
# told: a ring sends ranks - 1 shards, not the whole layer
# why: whole layers were sent
# next: ranks - 1 shards, each rounded up
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
# why: it holds them whole
# next: between two passes, what does it hold of a layer's weights?
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
# told: stage 1 shards only the optimizer state
# why: it was taken for stage 2, and stage 2 for stage 3
# next: the optimizer first, then gradients, then weights
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
# told: frozen layers have no optimizer state
# why: optimizer state of frozen layers was counted
# next: what is not updated needs none
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
# told: the first layers are frozen, and not the last
# why: gradients and optimizer are those of the layers before the last `frozen` ones
# next: layers[frozen:] are trained
# %% replace
trained = recipe["layers"][recipe["frozen"] :]
# %% by
trained = recipe["layers"][: len(recipe["layers"]) - recipe["frozen"]]


# %% mistake="zero_whole_padded"
# told: what is whole has no padding
# why: ranks times the shards were counted
# next: what is not sharded is as long as the layers are
# %% replace
return sum(-(-count // ranks) if sharded else count for count in layers)
# %% by
return sum(-(-count // ranks) * (1 if sharded else ranks) for count in layers)
