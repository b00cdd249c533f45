# exercise: zero
# told: gradients were taken for two bytes, whatever the recipe says
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
