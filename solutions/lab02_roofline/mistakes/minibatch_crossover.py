# %% mistake="elements_move"
# told: you counted elements, not bytes
import math


def batch_at_ridge(inputs, outputs, *, ridge, itemsize):
    gain = 2 * inputs * outputs - ridge * (inputs + outputs)
    return ridge * inputs * outputs / gain if gain > 0 else math.inf


# %% mistake="four_bytes_wide"
# told: your width assumes 4 bytes per element
def width_limit(*, ridge, itemsize):
    return 4 * ridge


# %% mistake="half_the_operations"
# told: your code counts a multiply-add as one operation
import math

# %% replace
gain = 2 * inputs * outputs - ridge * itemsize * (inputs + outputs)
# %% by
gain = inputs * outputs - ridge * itemsize * (inputs + outputs)


# %% mistake="narrow_side_decides"
# told: your function returned math.inf, but there is a batch that reaches the ridge
import math


def batch_at_ridge(inputs, outputs, *, ridge, itemsize, rightly=batch_at_ridge):  # noqa: F821
    narrow = min(inputs, outputs) <= ridge * itemsize
    return (
        math.inf if narrow else rightly(inputs, outputs, ridge=ridge, itemsize=itemsize)
    )


# %% mistake="negative_batches"
# told: your function returned a negative batch where no batch is large enough
def batch_at_ridge(inputs, outputs, *, ridge, itemsize):
    below = 2 * inputs * outputs - ridge * itemsize * (inputs + outputs)
    return ridge * itemsize * inputs * outputs / (below or 1)


# %% mistake="rounds_the_batch"
# told: your function rounds the batch
import math

# %% replace
return ridge * itemsize * inputs * outputs / gain if gain > 0 else math.inf
# %% by
return math.ceil(ridge * itemsize * inputs * outputs / gain) if gain > 0 else math.inf


# %% mistake="sixty_four_for_ever"
# told: your answer is the one for the deck's machine
def batch_at_ridge(inputs, outputs, *, ridge, itemsize):
    return 64


# %% mistake="weights_alone_move"
# told: your code counts only the weights
def batch_at_ridge(inputs, outputs, *, ridge, itemsize):
    return ridge * itemsize / 2


# %% mistake="wide_side_decides"
# told: your function returned a batch where no batch is large enough
import math


def batch_at_ridge(inputs, outputs, *, ridge, itemsize):
    if max(inputs, outputs) <= ridge * itemsize:
        return math.inf
    return abs(
        ridge
        * itemsize
        / (2 - ridge * itemsize * (inputs + outputs) / (inputs * outputs))
    )
