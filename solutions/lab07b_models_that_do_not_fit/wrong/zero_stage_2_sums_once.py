# exercise: zero
# told: stage 2 keeps no whole gradients between micro-batches
def sent_bytes(stage, ranks, recipe):
    """Accumulated first in stage 2."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, 1, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)
