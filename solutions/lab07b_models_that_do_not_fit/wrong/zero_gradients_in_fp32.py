# exercise: zero
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
