# exercise: zero
# told: a GPU does not send its own shard to itself
def sent_bytes(stage, ranks, recipe):
    """P shards."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return ranks * (recipe["gradients"] * gradients + recipe["weights"] * weights)
