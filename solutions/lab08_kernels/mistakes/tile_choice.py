# %% mistake="tiles_all_efficient"
# told: the efficiency of a tile is left out
# why: every tile reached the SM's whole rate
# next: small tiles reach less: that is what the field says
# %% replace
rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
# %% by
rate = chip["sm_flop_per_s"] / tile["per_sm"]


# %% mistake="tiles_always_reduced"
# told: without a split there is no second kernel
# why: its bytes and launch were counted with one part too
# next: one part needs no adding up
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
# why: each block had an SM's whole rate
# next: two blocks at a time take as long as one after the other
# %% replace
rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
# %% by
rate = chip["sm_flop_per_s"] * tile["efficiency"]


# %% mistake="tiles_by_area"
# told: a ragged tile is a whole block
# why: the output's elements were divided by a tile's
# next: tiles along m and tiles along n are each rounded up
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
# told: sums of the parts take 8 bytes each: 4 are written, then read
# like: tiles_parts_once
# why: 4 bytes of each were counted
# next: who writes them, who reads them, and what is not rounded yet?
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (2 * 2 * split + 2) * m * n


# %% mistake="tiles_k_in_fractions"
# told: the part of k that a block sums is rounded up
# why: parts of an element were summed
# next: the slowest block has the part that is rounded up
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = 2 * tile["m"] * tile["n"] * k / split


# %% mistake="tiles_largest"
# told: the largest tile is not always the quickest
# why: it was chosen in all cases
# next: what do its waves look like?
# %% replace
tiles = range(len(chip["tiles"]))
# %% by
sizes = [one["m"] * one["n"] for one in chip["tiles"]]
tiles = [sizes.index(max(sizes))]


# %% mistake="tiles_macs"
# told: a multiplication and an addition are two operations
# why: each pair was counted once
# next: 2 FLOP for each element of a tile and of k
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = tile["m"] * tile["n"] * -(-k // split)


# %% mistake="tiles_never_split"
# told: a split is never chosen
# why: the choice is the best without one in all cases
# next: price the splits too
# %% replace
return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
# %% by
return min(((tile, split) for tile in tiles for split in (1,)), key=took)


# %% mistake="tiles_no_launch"
# told: the second kernel's launch is left out
# why: its bytes alone were counted
# next: a launch has a price of its own
# %% replace
spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
# %% by
spent_s += moved / chip["byte_per_s"]


# %% mistake="tiles_no_output"
# told: the output is written once more, in 2 bytes
# why: only sums of the parts were counted
# next: what does the second kernel put out?
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = 2 * 4 * split * m * n


# %% mistake="tiles_one_an_sm"
# told: an SM holds per_sm blocks at a time
# why: waves of one block an SM were counted
# next: how many blocks does the whole chip hold?
# %% replace
waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
# %% by
waves = -(-blocks // chip["sm_count"])


# %% mistake="tiles_part_of_a_wave"
# told: a wave that is not full takes as long as a full one
# why: a part of a wave was counted as a part of its time
# next: how many whole waves are there?
# %% replace
waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
# %% by
waves = blocks / (chip["sm_count"] * tile["per_sm"])


# %% mistake="tiles_parts_once"
# told: sums of the parts take 8 bytes each: 4 are written, then read
# why: 4 bytes of each were counted
# next: who writes them, who reads them, and what is not rounded yet?
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (4 * split + 2) * m * n


# %% mistake="tiles_rounded_down"
# told: ragged tiles at the edges are left out
# why: tiles were rounded down
# next: who computes the last rows and columns?
# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
# %% by
blocks = (m // tile["m"]) * (n // tile["n"]) * split


# %% mistake="tiles_split_all_of_k"
# told: a block of a split sums only a part of k
# why: every block summed all of k
# next: k over split, rounded up
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = 2 * tile["m"] * tile["n"] * k


# %% mistake="tiles_split_by_place"
# told: a split is given as it is, not by its place in the list
# why: the quickest split's place in chip['splits'] came back
# next: (number of the tile, split)
# %% replace
return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
# %% by
tile, split = min(
    ((tile, split) for tile in tiles for split in chip["splits"]), key=took
)
return tile, chip["splits"].index(split)


# %% mistake="tiles_split_for_free"
# told: a split has a price: its sums are added up by a second kernel
# why: a split cost nothing
# next: which bytes are written and read, and who launches it?
# %% replace
if split > 1:
    moved = (2 * 4 * split + 2) * m * n
    spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
# %% by


# %% mistake="tiles_split_no_blocks"
# told: a split makes more blocks
# why: blocks were those of the output's tiles, with every split
# next: each tile is given to how many blocks?
# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
# %% by
blocks = -(-m // tile["m"]) * -(-n // tile["n"])


# %% mistake="tiles_splits_by_heart"
# told: best_tile tries other splits than chip['splits']
# why: best_tile gave a split that is not in chip['splits']
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
# told: per_sm is left out
# why: SMs held one block each
# next: it makes waves larger, and each block slower
# %% replace
waves = -(-blocks // (chip["sm_count"] * tile["per_sm"]))
# %% by
waves = -(-blocks // chip["sm_count"])
# %% replace
rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
# %% by
rate = chip["sm_flop_per_s"] * tile["efficiency"]


# %% mistake="tiles_k_rounded_down"
# told: the rest of k is left out
# why: k over split was rounded down
# next: who sums the last elements?
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = 2 * tile["m"] * tile["n"] * (k // split)


# %% mistake="tiles_parts_in_one_place"
# told: every block writes its sums, and all of them are read
# why: one of the two was counted for a single output
# next: how many outputs are written in parts, and how many are read?
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (4 * split + 4 + 2) * m * n


# %% mistake="tiles_output_in_fp32"
# told: the output is written in 2 bytes
# why: 4 were counted
# next: sums of the parts have 4, the output has 2
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (2 * 4 * split + 4) * m * n


# %% mistake="tiles_parts_in_2_bytes_one_way"
# told: sums of the parts have 4 bytes on both ways
# why: 2 were counted on one of them
# next: the second kernel reads what was written
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (4 * split + 2 * split + 2) * m * n


# %% mistake="tiles_a_part_fewer"
# told: every part is written and read, the first one too
# why: one part fewer was counted
# next: split blocks, each with sums
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (2 * 4 * (split - 1) + 2) * m * n


# %% mistake="tiles_real_flop"
# told: a block computes a whole tile, ragged or not
# why: the product's own FLOP were shared out among blocks
# next: 2 FLOP for each element of a tile and of its part of k
# %% replace
flop = 2 * tile["m"] * tile["n"] * -(-k // split)
# %% by
flop = 2 * m * n * k / blocks


# %% mistake="tiles_ragged_along_n"
# told: ragged tiles along n are left out
# why: tiles were rounded up along m and down along n
# next: who computes the last columns?
# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
# %% by
blocks = -(-m // tile["m"]) * (n // tile["n"]) * split


# %% mistake="tiles_ragged_along_m"
# told: ragged tiles along m are left out
# why: tiles were rounded up along n and down along m
# next: who computes the last rows?
# %% replace
blocks = -(-m // tile["m"]) * -(-n // tile["n"]) * split
# %% by
blocks = (m // tile["m"]) * -(-n // tile["n"]) * split


# %% mistake="tiles_split_as_room"
# told: a split makes more and shorter blocks, and no more room for them
# why: SMs held split times as many blocks, each over all of k
# next: split blocks for each tile, each over its part of k
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
# told: the efficiency of a tile is counted twice
# why: its square was taken
# next: an SM's rate times the efficiency, once
# %% replace
rate = chip["sm_flop_per_s"] * tile["efficiency"] / tile["per_sm"]
# %% by
rate = chip["sm_flop_per_s"] * tile["efficiency"] ** 2 / tile["per_sm"]


# %% mistake="tiles_added_whole"
# told: parts are outputs of m × n, not of whole tiles
# why: the second kernel moved padded outputs
# next: which elements of a ragged tile are written?
# %% replace
moved = (2 * 4 * split + 2) * m * n
# %% by
moved = (2 * 4 * split + 2) * blocks / split * tile["m"] * tile["n"]


# %% mistake="tiles_a_launch_a_part"
# told: one launch adds up all parts
# why: a launch was counted for each of them
# next: how many kernels come after the waves?
# %% replace
spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
# %% by
spent_s += moved / chip["byte_per_s"] + split * chip["launch_s"]


# %% mistake="tiles_side_by_side"
# told: parts are added up after the waves, not during them
# why: the longer of the waves and the second kernel was taken
# next: it reads what the waves have written: one comes after the other
# %% replace
spent_s += moved / chip["byte_per_s"] + chip["launch_s"]
# %% by
spent_s = max(spent_s, moved / chip["byte_per_s"] + chip["launch_s"])


# %% mistake="tiles_smallest"
# told: the smallest tile is not always the quickest
# why: it was chosen
# next: how much of the rate does it reach?
# %% replace
return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
# %% by
smallest = min(tiles, key=lambda at: chip["tiles"][at]["m"] * chip["tiles"][at]["n"])
return min(((smallest, split) for split in chip["splits"]), key=took)


# %% mistake="tiles_slowest"
# told: the slowest is chosen
# why: its price is the largest of all
# next: min, or max?
# %% replace
return min(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
# %% by
return max(((tile, split) for tile in tiles for split in chip["splits"]), key=took)
