# exercise: where_the_peak_is
# told: The logits are left out
def where_the_peak_is(step):
    """(moment, largest part, bytes of all parts) where a step holds most memory."""
    item, width, layers = step["itemsize"], step["width"], step["layers"]
    positions, table = step["batch"] * step["tokens"], step["vocabulary"] * width
    parameters = 12 * layers * width**2 + 2 * table
    states = parameters * (item + 8 + (4 if item == 2 else 0))
    whole = 16 * width * item * positions
    kept = width * item * positions if step["checkpointed"] else whole
    again = whole if step["checkpointed"] else 0
    behind_first = table + 12 * (layers - 1) * width**2
    # activations, gradients and logits of each moment
    rows = {
        "loss": (layers * kept, 0, 0),
        "last layer": (layers * kept + again, item * table, 0),
        "first layer": (kept + again, item * behind_first, 0),
        "optimizer": (0, item * parameters, 0),
    }
    moment = max(rows, key=lambda name: sum(rows[name]))
    named = dict(zip(("activations", "gradients", "logits"), rows[moment], strict=True))
    named["states"] = states
    return moment, max(named, key=named.get), sum(named.values())
