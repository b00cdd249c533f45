# exercise: zero
# told: shards are not rounded up
def held_bytes(stage, ranks, recipe):
    """A P-th."""
    trained = recipe["layers"][recipe["frozen"] :]

    def held(layers, sharded):
        return sum(layers) / (ranks if sharded else 1)

    return (
        recipe["weights"] * held(recipe["layers"], stage >= 3)
        + recipe["gradients"] * held(trained, stage >= 2)
        + recipe["optimizer"] * held(trained, stage >= 1)
    )
