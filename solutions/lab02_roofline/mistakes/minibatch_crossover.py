# %% mistake="elements_move"
# told: you counted elements, not bytes
import math


def batch_at_ridge(inputs, outputs, *, ridge, itemsize):
    gain = 2 * inputs * outputs - ridge * (inputs + outputs)
    return ridge * inputs * outputs / gain if gain > 0 else math.inf


# %% mistake="four_bytes_wide"
# told: 4 bytes an element were assumed
def width_limit(*, ridge, itemsize):
    return 4 * ridge


# %% mistake="half_the_operations"
# told: a multiply-add was counted as one operation
import math

# %% replace
gain = 2 * inputs * outputs - ridge * itemsize * (inputs + outputs)
# %% by
gain = inputs * outputs - ridge * itemsize * (inputs + outputs)


# %% mistake="narrow_side_decides"
# told: there is a batch that reaches the ridge
import math


def batch_at_ridge(inputs, outputs, *, ridge, itemsize, rightly=batch_at_ridge):  # noqa: F821
    narrow = min(inputs, outputs) <= ridge * itemsize
    return (
        math.inf if narrow else rightly(inputs, outputs, ridge=ridge, itemsize=itemsize)
    )


# %% mistake="negative_batches"
# told: a negative batch came back where none is large enough
def batch_at_ridge(inputs, outputs, *, ridge, itemsize):
    below = 2 * inputs * outputs - ridge * itemsize * (inputs + outputs)
    return ridge * itemsize * inputs * outputs / (below or 1)


# %% mistake="rounds_the_batch"
# told: the batch was rounded
import math

# %% replace
return ridge * itemsize * inputs * outputs / gain if gain > 0 else math.inf
# %% by
return math.ceil(ridge * itemsize * inputs * outputs / gain) if gain > 0 else math.inf


# %% mistake="sixty_four_for_ever"
# told: that is the answer for the deck's machine
def batch_at_ridge(inputs, outputs, *, ridge, itemsize):
    return 64


# %% mistake="weights_alone_move"
# told: only the weights were counted
def batch_at_ridge(inputs, outputs, *, ridge, itemsize):
    return ridge * itemsize / 2


# %% mistake="wide_side_decides"
# told: a batch came back where none is large enough
import math


def batch_at_ridge(inputs, outputs, *, ridge, itemsize):
    if max(inputs, outputs) <= ridge * itemsize:
        return math.inf
    return abs(
        ridge
        * itemsize
        / (2 - ridge * itemsize * (inputs + outputs) / (inputs * outputs))
    )
