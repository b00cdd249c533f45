# exercise: zero
# told: weights travel at the gradients' bytes
def sent_bytes(stage, ranks, recipe):
    """One dtype."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * recipe["gradients"] * (gradients + weights)
