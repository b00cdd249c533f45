# exercise: place_checkpoints
# told: the layers were cut into equal stretches


def place(layers, budget_bytes):
    """About the square root of the layers in each stretch, whatever they cost."""
    size = round(len(layers) ** 0.5)
    cuts = [(start, start + size) for start in range(0, len(layers) - size, size)]
    return [cut for cut in cuts if not any(layers[i]["once"] for i in range(*cut))]
