# %% mistake="again_for_every_layer"
# told: in your step, a layer runs again more than once
def run_step(step, stretches):
    """Runs the stretch from its start anew for each of its layers."""
    ends = {i: stretch for stretch in stretches for i in range(*stretch)}
    count = len(step.tape.layers)
    for i in range(count):
        step.forward(i, keep=i not in ends)
        if i - 1 in ends and ends[i - 1][1] != i:
            step.drop(i - 1)
    for i in reversed(range(count)):
        if i in ends:
            start, stop = ends[i]
            if i == stop - 1 and start < i:
                step.drop(i)
            for j in range(start, i + 1):
                step.recompute(j, keep=j == i)
            for j in range(start, i - 1):
                step.drop(j)
        step.backward(i)
        if i in ends and ends[i][0] < i:
            step.drop(i - 1)


# %% mistake="backward_counts_too"
# told: your code counts the time of backward passes
# %% replace
whole, longer_s = (
    whole + layer["activation_bytes"],
    longer_s + layer["forward_s"],
)
# %% by
whole += layer["activation_bytes"]
longer_s += layer["forward_s"] + layer["backward_s"]


# %% mistake="equal_counts"
# told: your stretches are not the fastest ones that fit
from functools import wraps


def _equal(exact):
    @wraps(exact)
    def place(layers, budget_bytes):
        """Stretches of equal counts from the front, as long as they fit; else what is best."""
        for size in range(1, len(layers)):
            for last in range(size, len(layers), size):
                stretches = [(i, i + size) for i in range(0, last, size)]
                inside = {i for stretch in stretches for i in range(*stretch)}
                if any(layers[i]["once"] for i in inside):
                    continue
                if _peak(layers, stretches) <= budget_bytes:
                    return stretches
        return exact(layers, budget_bytes)

    return place


def _peak(layers, stretches):
    ends, held, most, i = dict(stretches), 0, 0, 0
    while i < len(layers):
        stop = ends.get(i, i + 1)
        most = max(
            most, held + sum(layer["activation_bytes"] for layer in layers[i:stop])
        )
        held += (
            layers[stop - 1]["output_bytes"]
            if i in ends
            else layers[i]["activation_bytes"]
        )
        i = stop
    return most


place = _equal(place)


# %% mistake="equal_cuts"
# told: your code cuts the layers into equal stretches
def place(layers, budget_bytes):
    """About the square root of the layers in each stretch, whatever they cost."""
    size = round(len(layers) ** 0.5)
    cuts = [(start, start + size) for start in range(0, len(layers) - size, size)]
    return [cut for cut in cuts if not any(layers[i]["once"] for i in range(*cut))]


# %% mistake="forgets_the_open_stretch"
# told: in your step, a stretch that runs again does not fit
def place(layers, budget_bytes):
    """Counts what the forward pass leaves, and forgets the stretch that runs again."""
    found = []

    def go_on(i, held, again_s, stretches):
        if held > budget_bytes:
            return
        if i == len(layers):
            found.append((again_s, stretches))
            return
        go_on(i + 1, held + layers[i]["activation_bytes"], again_s, stretches)
        longer_s = again_s
        for stop, layer in enumerate(layers[i:], i + 1):
            longer_s += layer["forward_s"]
            if layer["once"]:
                return
            go_on(stop, held + layer["output_bytes"], longer_s, [*stretches, (i, stop)])

    go_on(0, 0, 0.0, [])
    return min(found)[1]


# %% mistake="input_is_gone"
# told: your code drops the output of a stretch's last layer
# %% replace
if i - 1 in ends and ends[i - 1][1] != i:
    step.drop(i - 1)
# %% by
if i - 1 in ends:
    step.drop(i - 1)


# %% mistake="keeps_everything"
# told: your step keeps everything, but that does not fit
def place(layers, budget_bytes):
    return []


# %% mistake="once_is_no_matter"
# told: your step reruns a layer that may run only once
from functools import wraps


def _again(exact):
    @wraps(exact)
    def place(layers, budget_bytes):
        return exact([{**layer, "once": False} for layer in layers], budget_bytes)

    return place


place = _again(place)


# %% mistake="outputs_stay"
# told: your code never drops the outputs inside a stretch
# %% replace
if i - 1 in ends and ends[i - 1][1] != i:
    step.drop(i - 1)
# %% by


# %% mistake="runs_one_again_for_nothing"
# told: your step recomputes layers, but everything fits without that
from functools import wraps


def _never_all(exact):
    @wraps(exact)
    def place(layers, budget_bytes):
        return exact(layers, budget_bytes) or [(0, 1)]

    return place


place = _never_all(place)


# %% mistake="sums_up_what_waits"
# told: your code counts more at the peak than is held at once
def place(layers, budget_bytes):
    """Counts all that waits after the forward pass, and the largest stretch beside it."""
    fitting = []

    def go_on(i, waiting, largest, again_s, stretches):
        if waiting + largest > budget_bytes:
            return
        if i == len(layers):
            fitting.append((again_s, stretches))
            return
        go_on(
            i + 1, waiting + layers[i]["activation_bytes"], largest, again_s, stretches
        )
        whole, longer_s = 0, again_s
        for stop, layer in enumerate(layers[i:], i + 1):
            if layer["once"]:
                return
            whole, longer_s = (
                whole + layer["activation_bytes"],
                longer_s + layer["forward_s"],
            )
            go_on(
                stop,
                waiting + layer["output_bytes"],
                max(largest, whole),
                longer_s,
                [*stretches, (i, stop)],
            )

    go_on(0, 0, 0, 0.0, [])
    return min(fitting)[1] if fitting else []
