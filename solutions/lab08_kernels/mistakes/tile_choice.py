# %% mistake="tiles_all_efficient"
# told: your answer leaves out the efficiency of a tile
# why: your answer lets every tile reach the SM's whole rate
# next: multiply an SM's rate by tile["efficiency"]: small tiles reach less of the rate
# %% replace
rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
# %% by
rate = chip["sm_flop_per_s"] / tile["per_sm"]


# %% mistake="tiles_always_reduced"
# told: your answer counts the second kernel even without a split
# why: your answer adds the second kernel's bytes and launch even if there is only one part
# next: if there is only one part, add nothing
# %% replace
if split > 1:
    moved = (2 * 4 * split + 2) * m * n
    spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
# %% by
moved = (2 * 4 * split + 2) * m * n
spent_s += moved / chip["byte_per_s"] + chip["launch_s"]


# %% mistake="tiles_as_dicts"
# told: your best_tile() returns a tile's dict instead of the tile's number
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
# told: your answer counts a partial tile as a fraction of a block
# why: your answer divides the output's elements by a tile's elements
# next: round up the number of tiles along m and along n separately
from math import ceil

# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
# %% by
blocks = m * n / (tile["m"] * tile["n"]) * split
waves = ceil(blocks / (chip["sm_count"] * tile["per_sm"]))


# %% mistake="tiles_by_waves"
# told: your function does not choose the fastest tile and split
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
# told: in your answer, the bytes of the parts' sums are half of what they should be
# like: tiles_parts_once
# why: your answer counts 4 bytes for each sum instead of 8
# next: which kernel writes these sums, which kernel reads them, and are the sums already rounded?
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (2 * 2 * split + 2) * m * n


# %% mistake="tiles_k_in_fractions"
# told: your answer does not round up the part of k that a block sums
# why: your answer uses `k / split` even if this is a fraction
# next: over how many steps of k does the slowest block sum?
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = 2 * tile["m"] * tile["n"] * k / split


# %% mistake="tiles_largest"
# told: your function always chooses the largest tile
# why: but the largest tile is not always the fastest
# next: with the largest tile, how full are the waves?
# %% replace
tiles = range(len(chip["tiles"]))
# %% by
sizes = [one["m"] * one["n"] for one in chip["tiles"]]
tiles = [sizes.index(max(sizes))]


# %% mistake="tiles_macs"
# told: your answer counts a multiplication and an addition as one operation
# why: your answer counts 1 FLOP for each pair
# next: count 2 FLOP for each element of a tile and each step of k
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = tile["m"] * tile["n"] * -(-k // split)


# %% mistake="tiles_never_split"
# told: your function never chooses a split
# why: in all cases, your choice is the best one without a split
# next: compute the time of every tile with every split
# %% replace
return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
# %% by
return min(((tile, split) for tile in tiles for split in (1,)), key=took)


# %% mistake="tiles_no_launch"
# told: your answer leaves out the second kernel's launch
# why: your answer counts only the second kernel's bytes
# next: add the time of a launch
# %% replace
spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
# %% by
spent_s += moved / chip["byte_per_s"]


# %% mistake="tiles_no_output"
# told: your answer leaves out the bytes of the final output
# why: your answer counts only the sums of the parts
# next: what does the second kernel write?
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = 2 * 4 * split * m * n


# %% mistake="tiles_one_an_sm"
# told: your answer counts waves with one block per SM
# why: but an SM holds `per_sm` blocks at a time
# next: how many blocks does the whole chip hold?
# %% replace
waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
# %% by
waves = -(-blocks // chip["sm_count"])


# %% mistake="tiles_part_of_a_wave"
# told: your answer counts a partial wave as a fraction of a wave's time
# why: but a wave that is not full takes as long as a full wave
# next: round up the number of waves
# %% replace
waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
# %% by
waves = blocks / (chip["sm_count"] * tile["per_sm"])


# %% mistake="tiles_parts_once"
# told: in your answer, the bytes of the parts' sums are half of what they should be
# why: your answer counts 4 bytes for each sum instead of 8
# next: which kernel writes these sums, which kernel reads them, and are the sums already rounded?
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (4 * split + 2) * m * n


# %% mistake="tiles_rounded_down"
# told: your answer leaves out the partial tiles at the edges
# why: your answer rounds the numbers of tiles down
# next: which blocks compute the last rows and columns?
# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
# %% by
blocks = (m // tile["m"]) * (n // tile["n"]) * split


# %% mistake="tiles_split_all_of_k"
# told: in your answer, every block sums all of k even with a split
# why: but with a split, a block sums only a part of k
# next: divide `k` by `split`, and round up
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = 2 * tile["m"] * tile["n"] * k


# %% mistake="tiles_split_by_place"
# told: your best_tile() returns a split's position in the list instead of the split
# why: best_tile() returned the position of the fastest split in chip['splits']
# next: return (the tile's number, the split)
# %% replace
return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
# %% by
tile, split = min(
    ((tile, split) for tile in tiles for split in chip["splits"]), key=took
)
return tile, chip["splits"].index(split)


# %% mistake="tiles_split_for_free"
# told: in your answer, a split costs nothing
# why: but with a split, a second kernel must add up the sums of the parts
# next: which bytes does the second kernel read and write, and how long does its launch take?
# %% replace
if split > 1:
    moved = (2 * 4 * split + 2) * m * n
    spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
# %% by


# %% mistake="tiles_split_no_blocks"
# told: in your answer, a split does not make more blocks
# why: with every split, your answer counts one block for each tile
# next: with a split, how many blocks compute each tile?
# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
# %% by
blocks = -(-m // tile["m"]) * -(-n // tile["n"])


# %% mistake="tiles_splits_by_heart"
# told: your best_tile() tries splits that are not in chip['splits']
# why: best_tile() returned a split that is not in chip['splits']
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
# told: your answer leaves out `per_sm`
# why: your answer gives every SM only one block at a time
# next: use `per_sm` twice: more blocks per SM make a wave larger, and each block slower
# %% replace
waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
# %% by
waves = -(-blocks // chip["sm_count"])
# %% replace
rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
# %% by
rate = chip["sm_flop_per_s"] * tile["efficiency"]


# %% mistake="tiles_k_rounded_down"
# told: your answer leaves out the remainder of k / split
# why: your answer rounds `k / split` down
# next: which block sums the last elements?
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = 2 * tile["m"] * tile["n"] * (k // split)


# %% mistake="tiles_parts_in_one_place"
# told: your answer counts the sums of only one part, either when they are written or when they are read
# why: but every block writes its sums, and the second kernel reads all of these sums
# next: the sums of how many parts are written, and the sums of how many parts are read?
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (4 * split + 4 + 2) * m * n


# %% mistake="tiles_output_in_fp32"
# told: your answer counts the final output with 4 bytes per element
# why: but only the sums of the parts take 4 bytes
# next: count 2 bytes per element of the final output
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (2 * 4 * split + 4) * m * n


# %% mistake="tiles_parts_in_2_bytes_one_way"
# told: in your answer, the sum of a part takes 2 bytes when it is written or when it is read
# why: but each sum is written in 4 bytes, and the second kernel reads the same 4 bytes
# next: count 4 bytes for writing each sum, and 4 bytes for reading it
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (4 * split + 2 * split + 2) * m * n


# %% mistake="tiles_a_part_fewer"
# told: your answer leaves out the sums of one part
# why: but the sums of every part are written and read, including those of the first part
# next: count the sums of all `split` parts
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (2 * 4 * (split - 1) + 2) * m * n


# %% mistake="tiles_real_flop"
# told: in your answer, partial tiles compute only their own elements
# why: your answer divides the product's own FLOP among the blocks
# next: for every block, count a whole tile: 2 FLOP for each element of the tile and each step of the block's part of k
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = 2 * m * n * k / blocks


# %% mistake="tiles_ragged_along_n"
# told: your answer leaves out partial tiles along n
# why: your answer rounds the number of tiles up along m, but down along n
# next: which blocks compute the last columns?
# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
# %% by
blocks = -(-m // tile["m"]) * (n // tile["n"]) * split


# %% mistake="tiles_ragged_along_m"
# told: your answer leaves out partial tiles along m
# why: your answer rounds the number of tiles up along n, but down along m
# next: which blocks compute the last rows?
# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
# %% by
blocks = (m // tile["m"]) * -(-n // tile["n"]) * split


# %% mistake="tiles_split_as_room"
# told: in your answer, a split lets an SM hold more blocks instead of making more blocks
# why: in your answer, SMs hold `split` times as many blocks, and each block sums all of k
# next: for each tile, count `split` blocks that each sum one part of k
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
# told: your answer counts the efficiency of a tile twice
# why: your answer uses the square of the efficiency
# next: multiply an SM's rate by the efficiency once
# %% replace
rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
# %% by
rate = chip["sm_flop_per_s"] * tile["efficiency"] ** 2 / tile["per_sm"]


# %% mistake="tiles_added_whole"
# told: in your answer, the second kernel moves whole tiles instead of m × n outputs
# why: your answer includes the padding of partial tiles in the second kernel's bytes
# next: which elements of a partial tile are written?
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (2 * 4 * split + 2) * blocks / split * tile["m"] * tile["n"]


# %% mistake="tiles_a_launch_a_part"
# told: your answer counts a launch for each part
# why: but a single launch adds up all parts
# next: how many kernels come after the waves?
# %% replace
spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
# %% by
spent_s += moved / chip["byte_per_s"] + split * chip["launch_s"]


# %% mistake="tiles_side_by_side"
# told: in your answer, the second kernel runs during the waves, not after them
# why: your answer uses the longer of the two times
# next: add the two times: the second kernel reads what the waves have written
# %% replace
spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
# %% by
spent_s = max(spent_s, moved / chip["byte_per_s"] + chip["launch_s"])


# %% mistake="tiles_smallest"
# told: your function always chooses the smallest tile
# why: but the smallest tile is not always the fastest
# next: how much of an SM's rate does the smallest tile reach?
# %% replace
return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
# %% by
smallest = min(tiles, key=lambda at: chip["tiles"][at]["m"] * chip["tiles"][at]["n"])
return min(((smallest, split) for split in chip["splits"]), key=took)


# %% mistake="tiles_slowest"
# told: your function returns the slowest choice
# why: your choice takes the longest time of all choices
# next: use min instead of max
# %% replace
return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
# %% by
return max(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
