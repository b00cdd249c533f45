# %% mistake="tiles_all_efficient"
# told: in your answer, the efficiency of a tile is left out
# why: every tile reaches the SM's whole rate
# next: use tile["efficiency"]: small tiles reach less of the rate
# %% replace
rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
# %% by
rate = chip["sm_flop_per_s"] / tile["per_sm"]


# %% mistake="tiles_always_reduced"
# told: in your answer, the second kernel is counted even without a split
# why: its bytes and its launch are added even if there is only one part
# next: add nothing if there is only one part
# %% replace
if split > 1:
    moved = (2 * 4 * split + 2) * m * n
    spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
# %% by
moved = (2 * 4 * split + 2) * m * n
spent_s += moved / chip["byte_per_s"] + chip["launch_s"]


# %% mistake="tiles_as_dicts"
# told: best_tile returns a tile's dict instead of its number
# %% replace
return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
# %% by
tile, split = min(
    ((tile, split) for tile in tiles for split in chip["splits"]), key=took
)
return chip["tiles"][tile], split


# %% mistake="tiles_at_full_rate"
# told: in your answer, blocks on the same SM do not share its rate
# why: your answer gives each block the whole rate of an SM, however many blocks run there
# next: how long do two blocks take if they run on one SM at the same time?
# %% replace
rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
# %% by
rate = chip["sm_flop_per_s"] * tile["efficiency"]


# %% mistake="tiles_by_area"
# told: in your answer, a partial tile is counted as a fraction of a block
# why: the output's elements are divided by a tile's elements
# next: round up the number of tiles along m and along n separately
from math import ceil

# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
# %% by
blocks = m * n / (tile["m"] * tile["n"]) * split
waves = ceil(blocks / (chip["sm_count"] * tile["per_sm"]))


# %% mistake="tiles_by_waves"
# told: another tile or split is faster
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
# told: the bytes of the parts' sums are half of what they should be
# like: tiles_parts_once
# why: 4 bytes are counted for each sum instead of 8
# next: which kernel writes these sums, which one reads them, and are they already rounded?
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (2 * 2 * split + 2) * m * n


# %% mistake="tiles_k_in_fractions"
# told: in your answer, the part of k that a block sums is not rounded up
# why: k is divided by split with a fractional result
# next: how many steps of k does the slowest block have?
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = 2 * tile["m"] * tile["n"] * k / split


# %% mistake="tiles_largest"
# told: in your answer, the largest tile is always chosen
# why: but the largest tile is not always the fastest
# next: how full are the largest tile's waves?
# %% replace
tiles = range(len(chip["tiles"]))
# %% by
sizes = [one["m"] * one["n"] for one in chip["tiles"]]
tiles = [sizes.index(max(sizes))]


# %% mistake="tiles_macs"
# told: in your answer, a multiplication and an addition are counted as one operation
# why: each pair is counted once
# next: count 2 FLOP for each element of a tile and each step of k
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = tile["m"] * tile["n"] * -(-k // split)


# %% mistake="tiles_never_split"
# told: in your answer, a split is never chosen
# why: in all cases, the choice is the best one without a split
# next: price the splits too
# %% replace
return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
# %% by
return min(((tile, split) for tile in tiles for split in (1,)), key=took)


# %% mistake="tiles_no_launch"
# told: in your answer, the second kernel's launch is left out
# why: only the second kernel's bytes are counted
# next: add the price of a launch
# %% replace
spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
# %% by
spent_s += moved / chip["byte_per_s"]


# %% mistake="tiles_no_output"
# told: in your answer, the bytes of the final output are left out
# why: only the sums of the parts are counted
# next: what does the second kernel write?
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = 2 * 4 * split * m * n


# %% mistake="tiles_one_an_sm"
# told: in your answer, waves are counted with one block per SM
# why: but an SM holds per_sm blocks at a time
# next: how many blocks does the whole chip hold?
# %% replace
waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
# %% by
waves = -(-blocks // chip["sm_count"])


# %% mistake="tiles_part_of_a_wave"
# told: in your answer, a partial wave is counted as a fraction of a wave's time
# why: but a wave that is not full takes as long as a full one
# next: round up the number of waves
# %% replace
waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
# %% by
waves = blocks / (chip["sm_count"] * tile["per_sm"])


# %% mistake="tiles_parts_once"
# told: in your answer, the bytes of the parts' sums are half of what they should be
# why: 4 bytes are counted for each sum instead of 8
# next: which kernel writes these sums, which one reads them, and are they already rounded?
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (4 * split + 2) * m * n


# %% mistake="tiles_rounded_down"
# told: in your answer, partial tiles at the edges are left out
# why: the numbers of tiles are rounded down
# next: which blocks compute the last rows and columns?
# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
# %% by
blocks = (m // tile["m"]) * (n // tile["n"]) * split


# %% mistake="tiles_split_all_of_k"
# told: in your answer, with a split, every block sums all of k
# why: but a block of a split sums only a part of k
# next: divide k by split, and round up
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = 2 * tile["m"] * tile["n"] * k


# %% mistake="tiles_split_by_place"
# told: best_tile returns a split's position in the list instead of the split
# why: your function returned the position of the fastest split in chip['splits']
# next: return (number of the tile, split)
# %% replace
return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
# %% by
tile, split = min(
    ((tile, split) for tile in tiles for split in chip["splits"]), key=took
)
return tile, chip["splits"].index(split)


# %% mistake="tiles_split_for_free"
# told: in your answer, a split costs nothing
# why: but a second kernel must add up its sums
# next: which bytes are written and read, and what does a launch cost?
# %% replace
if split > 1:
    moved = (2 * 4 * split + 2) * m * n
    spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
# %% by


# %% mistake="tiles_split_no_blocks"
# told: in your answer, a split does not make more blocks
# why: blocks are counted as the tiles of the output with every split
# next: how many blocks compute each tile?
# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
# %% by
blocks = -(-m // tile["m"]) * -(-n // tile["n"])


# %% mistake="tiles_splits_by_heart"
# told: best_tile tries splits that are not in chip['splits']
# why: best_tile returned a split that is not in chip['splits']
# next: take the split from chip['splits']
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
# told: in your answer, per_sm is left out
# why: your answer gives every SM only one block at a time
# next: use per_sm twice: it makes waves larger, and each block slower
# %% replace
waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
# %% by
waves = -(-blocks // chip["sm_count"])
# %% replace
rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
# %% by
rate = chip["sm_flop_per_s"] * tile["efficiency"]


# %% mistake="tiles_k_rounded_down"
# told: in your answer, the rest of k is left out
# why: k divided by split is rounded down
# next: which block sums the last elements?
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = 2 * tile["m"] * tile["n"] * (k // split)


# %% mistake="tiles_parts_in_one_place"
# told: in your answer, writing or reading the parts is counted for a single output
# why: every block writes its sums, and all of them are read
# next: how many outputs are written in parts, and how many are read?
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (4 * split + 4 + 2) * m * n


# %% mistake="tiles_output_in_fp32"
# told: in your answer, the final output is counted with 4 bytes per element
# why: but only the sums of the parts take 4 bytes
# next: count 2 bytes per element of the final output
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (2 * 4 * split + 4) * m * n


# %% mistake="tiles_parts_in_2_bytes_one_way"
# told: in your answer, a part's sum takes 2 bytes when it is written or when it is read
# why: but the second kernel reads what was written, and each sum takes 4 bytes
# next: count 4 bytes in both directions
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (4 * split + 2 * split + 2) * m * n


# %% mistake="tiles_a_part_fewer"
# told: in your answer, the sums of one part are left out
# why: but every part is written and read, including the first
# next: count the sums of all `split` parts
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (2 * 4 * (split - 1) + 2) * m * n


# %% mistake="tiles_real_flop"
# told: in your answer, partial tiles compute only their own elements
# why: the product's own FLOP are divided among the blocks
# next: count 2 FLOP for each element of a whole tile and of its part of k
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = 2 * m * n * k / blocks


# %% mistake="tiles_ragged_along_n"
# told: in your answer, partial tiles along n are left out
# why: tiles are rounded up along m and down along n
# next: which blocks compute the last columns?
# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
# %% by
blocks = -(-m // tile["m"]) * (n // tile["n"]) * split


# %% mistake="tiles_ragged_along_m"
# told: in your answer, partial tiles along m are left out
# why: tiles are rounded up along n and down along m
# next: which blocks compute the last rows?
# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
# %% by
blocks = (m // tile["m"]) * -(-n // tile["n"]) * split


# %% mistake="tiles_split_as_room"
# told: in your answer, a split makes room for more blocks instead of making more blocks
# why: SMs hold split times as many blocks, each over all of k
# next: count split blocks for each tile, each over its part of k
# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
# %% by
blocks = -(-m // tile["m"]) * -(-n // tile["n"])
# %% replace
waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
# %% by
waves = -(-blocks // (chip["sm_count"] * tile["per_sm"] * split))
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = 2 * tile["m"] * tile["n"] * k


# %% mistake="tiles_efficiency_twice"
# told: in your answer, the efficiency of a tile is counted twice
# why: the square of the efficiency is used
# next: multiply an SM's rate by the efficiency once
# %% replace
rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
# %% by
rate = chip["sm_flop_per_s"] * tile["efficiency"] ** 2 / tile["per_sm"]


# %% mistake="tiles_added_whole"
# told: in your answer, the second kernel moves whole tiles instead of m × n outputs
# why: its bytes include the padding of partial tiles
# next: which elements of a partial tile are written?
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (2 * 4 * split + 2) * blocks / split * tile["m"] * tile["n"]


# %% mistake="tiles_a_launch_a_part"
# told: in your answer, a launch is counted for each part
# why: but a single launch adds up all parts
# next: how many kernels come after the waves?
# %% replace
spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
# %% by
spent_s += moved / chip["byte_per_s"] + split * chip["launch_s"]


# %% mistake="tiles_side_by_side"
# told: in your answer, the parts are added up during the waves, not after them
# why: the longer of the two times is used
# next: add the times: the second kernel reads what the waves have written
# %% replace
spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
# %% by
spent_s = max(spent_s, moved / chip["byte_per_s"] + chip["launch_s"])


# %% mistake="tiles_smallest"
# told: in your answer, the smallest tile is always chosen
# why: but the smallest tile is not always the fastest
# next: how much of the rate does the smallest tile reach?
# %% replace
return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
# %% by
smallest = min(tiles, key=lambda at: chip["tiles"][at]["m"] * chip["tiles"][at]["n"])
return min(((smallest, split) for split in chip["splits"]), key=took)


# %% mistake="tiles_slowest"
# told: in your answer, the slowest choice is returned
# why: its time is the longest of all
# next: use min instead of max
# %% replace
return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
# %% by
return max(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
