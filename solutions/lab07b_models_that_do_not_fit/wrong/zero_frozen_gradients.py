# exercise: zero
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
