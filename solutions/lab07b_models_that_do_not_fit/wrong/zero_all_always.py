# exercise: zero
# told: stages 0 and 1 send once a step, however many micro-batches there are
def sent_bytes(stage, ranks, recipe):
    """All of it, each micro-batch."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2 * times, times, times, times)[stage]
    weights = (0, times * trained, trained, times * (frozen + 2 * trained))[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)
