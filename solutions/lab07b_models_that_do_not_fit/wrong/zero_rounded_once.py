# exercise: zero
# told: shards are rounded up once for the whole model
def held_bytes(stage, ranks, recipe):
    """All parameters in one row."""
    trained = recipe["layers"][recipe["frozen"] :]

    def held(layers, sharded):
        return -(-sum(layers) // ranks) if sharded else sum(layers)

    return (
        recipe["weights"] * held(recipe["layers"], stage >= 3)
        + recipe["gradients"] * held(trained, stage >= 2)
        + recipe["optimizer"] * held(trained, stage >= 1)
    )
