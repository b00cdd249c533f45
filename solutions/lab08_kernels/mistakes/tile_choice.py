# %% mistake="tiles_all_efficient"
# told: the efficiency of a tile is left out
# %% replace
rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
# %% by
rate = chip["sm_flop_per_s"] / tile["per_sm"]


# %% mistake="tiles_always_reduced"
# told: without a split there is no second kernel
# %% replace
if split > 1:
    moved = (2 * 4 * split + 2) * m * n
    spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
# %% by
moved = (2 * 4 * split + 2) * m * n
spent_s += moved / chip["byte_per_s"] + chip["launch_s"]


# %% mistake="tiles_as_dicts"
# told: a tile is named by its number in the list
# %% replace
return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
# %% by
tile, split = min(
    ((tile, split) for tile in tiles for split in chip["splits"]), key=took
)
return chip["tiles"][tile], split


# %% mistake="tiles_at_full_rate"
# told: blocks of one SM share its rate
# %% replace
rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
# %% by
rate = chip["sm_flop_per_s"] * tile["efficiency"]


# %% mistake="tiles_by_area"
# told: a ragged tile is a whole block
from math import ceil

# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
# %% by
blocks = m * n / (tile["m"] * tile["n"]) * split
waves = ceil(blocks / (chip["sm_count"] * tile["per_sm"]))


# %% mistake="tiles_by_waves"
# told: another tile or split is quicker
def best_tile(m, n, k, chip):
    """The fullest last wave."""

    def full(choice):
        tile, split = chip["tiles"][choice[0]], choice[1]
        slots = chip["sm_count"] * tile["per_sm"]
        blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
        return blocks / (slots * -(-blocks // slots))

    tiles = range(len(chip["tiles"]))
    return max(((tile, split) for tile in tiles for split in chip["splits"]), key=full)


# %% mistake="tiles_halves"
# told: sums of the parts take 8 bytes each
# like: tiles_parts_once
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (2 * 2 * split + 2) * m * n


# %% mistake="tiles_k_in_fractions"
# told: the part of k that a block sums is rounded up
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = 2 * tile["m"] * tile["n"] * k / split


# %% mistake="tiles_largest"
# told: the largest tile is not always the quickest
# %% replace
tiles = range(len(chip["tiles"]))
# %% by
sizes = [one["m"] * one["n"] for one in chip["tiles"]]
tiles = [sizes.index(max(sizes))]


# %% mistake="tiles_macs"
# told: a multiplication and an addition are two operations
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = tile["m"] * tile["n"] * -(-k // split)


# %% mistake="tiles_never_split"
# told: a split is never chosen
# %% replace
return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
# %% by
return min(((tile, split) for tile in tiles for split in (1,)), key=took)


# %% mistake="tiles_no_launch"
# told: the second kernel's launch is left out
# %% replace
spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
# %% by
spent_s += moved / chip["byte_per_s"]


# %% mistake="tiles_no_output"
# told: the output is written once more, in 2 bytes
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = 2 * 4 * split * m * n


# %% mistake="tiles_one_an_sm"
# told: an SM holds per_sm blocks at a time
# %% replace
waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
# %% by
waves = -(-blocks // chip["sm_count"])


# %% mistake="tiles_part_of_a_wave"
# told: a wave that is not full takes as long as a full one
# %% replace
waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
# %% by
waves = blocks / (chip["sm_count"] * tile["per_sm"])


# %% mistake="tiles_parts_once"
# told: sums of the parts take 8 bytes each
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (4 * split + 2) * m * n


# %% mistake="tiles_rounded_down"
# told: ragged tiles at the edges are left out
# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
# %% by
blocks = (m // tile["m"]) * (n // tile["n"]) * split


# %% mistake="tiles_split_all_of_k"
# told: a block of a split sums a part of k alone
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = 2 * tile["m"] * tile["n"] * k


# %% mistake="tiles_split_by_place"
# told: a split is given as it is, not by its place in the list
# %% replace
return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
# %% by
tile, split = min(
    ((tile, split) for tile in tiles for split in chip["splits"]), key=took
)
return tile, chip["splits"].index(split)


# %% mistake="tiles_split_for_free"
# told: a split has a price
# %% replace
if split > 1:
    moved = (2 * 4 * split + 2) * m * n
    spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
# %% by


# %% mistake="tiles_split_no_blocks"
# told: a split makes more blocks
# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
# %% by
blocks = -(-m // tile["m"]) * -(-n // tile["n"])


# %% mistake="tiles_splits_by_heart"
# told: that is no tile and split of this chip
def best_tile(m, n, k, chip):
    """Tries the splits of the lab's own chip."""
    return min(
        (
            (tile, split)
            for tile in range(len(chip["tiles"]))
            for split in (1, 2, 4, 8, 16)
        ),
        key=lambda one: product_s(m, n, k, chip["tiles"][one[0]], one[1], chip),
    )


# %% mistake="tiles_without_per_sm"
# told: per_sm is left out
# %% replace
waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
# %% by
waves = -(-blocks // chip["sm_count"])
# %% replace
rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
# %% by
rate = chip["sm_flop_per_s"] * tile["efficiency"]
