# %% mistake="corner_counted_twice"
# told: your code counts the tile in the corner twice
def tile_report(m, n, *, tile_m, tile_n, rightly=tile_report):  # noqa: F821
    tiles, wasted, _ = rightly(m, n, tile_m=tile_m, tile_n=tile_n)
    rows, columns = -(-m // tile_m), -(-n // tile_n)
    return tiles, wasted, (columns if m % tile_m else 0) + (rows if n % tile_n else 0)


# %% mistake="one_tile_too_many"
# told: your code adds tiles where the matrix fits exactly
def tile_report(m, n, *, tile_m, tile_n):
    count = (m // tile_m + 1) * (n // tile_n + 1)
    return (
        count,
        1 - m * n / (count * tile_m * tile_n),
        count - (m // tile_m) * (n // tile_n),
    )


# %% mistake="tiles_by_area"
# told: your code counts tiles by area
import math


def tile_report(m, n, *, tile_m, tile_n):
    count = math.ceil(m * n / (tile_m * tile_n))
    return (
        count,
        1 - m * n / (count * tile_m * tile_n),
        count - (m // tile_m) * (n // tile_n),
    )


# %% mistake="tiles_rounded_down"
# told: your tiles do not cover the whole matrix
def tile_report(m, n, *, tile_m, tile_n):
    count = max(m // tile_m, 0) * max(n // tile_n, 0)
    return count, abs(1 - m * n / (count * tile_m * tile_n)) if count else 0.0, 0


# %% mistake="useful_for_wasted"
# told: your answer is the useful share
import math


def tile_report(m, n, *, tile_m, tile_n):
    count = math.ceil(m / tile_m) * math.ceil(n / tile_n)
    return (
        count,
        m * n / (count * tile_m * tile_n),
        count - (m // tile_m) * (n // tile_n),
    )


# %% mistake="waste_in_percent"
# told: your wasted share is a percentage
import math


def tile_report(m, n, *, tile_m, tile_n):
    count = math.ceil(m / tile_m) * math.ceil(n / tile_n)
    return (
        count,
        100 * (1 - m * n / (count * tile_m * tile_n)),
        count - (m // tile_m) * (n // tile_n),
    )


# %% mistake="wasted_elements"
# told: your answer is the number of wasted elements
import math


def tile_report(m, n, *, tile_m, tile_n):
    count = math.ceil(m / tile_m) * math.ceil(n / tile_n)
    return count, count * tile_m * tile_n - m * n, count - (m // tile_m) * (n // tile_n)
