# exercise: zero
# told: sharded gradients are not all-reduced
def sent_bytes(stage, ranks, recipe):
    """Sums for everybody."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 2, 2 * times, 2 * times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)
