# %% mistake="as_wide_as_allowed"
# told: your function returned the widest matrix, which is not the best one
def best_width(m, *, bound, tile_m, tile_n, sm_count):
    return bound


# %% mistake="bound_left_out"
# told: your function did not return the best width
def best_width(m, *, bound, tile_m, tile_n, sm_count):
    def share(n):
        tiles = -(-m // tile_m) * -(-n // tile_n)
        return n / wave_report(tiles, sm_count=sm_count)[0]

    return max(range(1, bound), key=share)


# %% mistake="full_wave_has_room"
# told: your code finds spare places in a wave that is full
def wave_report(tiles, *, sm_count, rightly=wave_report):  # noqa: F821
    waves, efficiency, _ = rightly(tiles, sm_count=sm_count)
    return waves, efficiency, sm_count - tiles % sm_count


# %% mistake="last_wave_forgotten"
# told: your code leaves out the last wave
def wave_report(tiles, *, sm_count):
    waves = max(1, tiles // sm_count)
    return waves, min(1.0, tiles / (waves * sm_count)), max(0, waves * sm_count - tiles)


# %% mistake="only_the_last_wave"
# told: your efficiency is that of the last wave
def wave_report(tiles, *, sm_count):
    left = tiles % sm_count or sm_count
    return (tiles - left) // sm_count + 1, left / sm_count, sm_count - left


# %% mistake="shares_added"
# told: your best_width adds the shares of tiles and waves, or tries only multiples of tile_n
# why: each of these mistakes explains all your widths; in one case the bound is better, but is not a multiple of tile_n
# next: try every n from 1 to the bound, and compare the wanted elements with what all waves could compute
def best_width(m, *, bound, tile_m, tile_n, sm_count):
    def share(n):
        tiles = -(-m // tile_m) * -(-n // tile_n)
        return (
            m * n / (tiles * tile_m * tile_n) + wave_report(tiles, sm_count=sm_count)[1]
        )

    return max(range(1, bound + 1), key=share)


# %% mistake="whole_tiles_only"
# told: your function returned only widths of whole tiles
def best_width(m, *, bound, tile_m, tile_n, sm_count):
    return bound // tile_n * tile_n


# %% mistake="tiles_by_area"
# told: your best_width counts tiles by area
# why: leftovers along m and n share no tile; your widths would be best if m * n / (tile_m * tile_n) tiles were enough
# next: round up along each side, then multiply the two counts
def best_width(m, *, bound, tile_m, tile_n, sm_count):
    def share(n):
        tiles = -(-m * n // (tile_m * tile_n))
        return n / wave_report(tiles, sm_count=sm_count)[0]

    return max(range(1, bound + 1), key=share)


# %% mistake="sides_of_a_tile_swapped"
# told: your best_width swaps the sides of a tile
# why: all your widths would be optimal if there were m / tile_n rows and n / tile_m columns of tiles
# next: divide m by tile_m, and n by tile_n
def best_width(m, *, bound, tile_m, tile_n, sm_count):
    def share(n):
        tiles = -(-m // tile_n) * -(-n // tile_m)
        return n / wave_report(tiles, sm_count=sm_count)[0]

    return max(range(1, bound + 1), key=share)


# %% mistake="rows_of_tiles_rounded_down"
# told: your best_width rounds the rows of tiles down
# why: all your widths would be optimal if there were only m // tile_m rows of tiles
# next: round up along each side: what is left over along m needs a row of tiles, too
def best_width(m, *, bound, tile_m, tile_n, sm_count):
    def share(n):
        tiles = max(1, m // tile_m) * -(-n // tile_n)
        return n / wave_report(tiles, sm_count=sm_count)[0]

    return max(range(1, bound + 1), key=share)


# %% mistake="columns_of_tiles_rounded_down"
# told: your best_width rounds the columns of tiles down
# why: all your widths would be optimal if there were only n // tile_n columns of tiles
# next: round up along each side: what is left over along n needs a column of tiles, too
def best_width(m, *, bound, tile_m, tile_n, sm_count):
    def share(n):
        tiles = -(-m // tile_m) * max(1, n // tile_n)
        return n / wave_report(tiles, sm_count=sm_count)[0]

    return max(range(1, bound + 1), key=share)


# %% mistake="tiles_rounded_down"
# told: your best_width rounds the tiles down along both sides
# why: all your widths would be optimal if there were only m // tile_m rows and n // tile_n columns of tiles
# next: round up along each side: what is left over needs tiles, too
def best_width(m, *, bound, tile_m, tile_n, sm_count):
    def share(n):
        tiles = max(1, m // tile_m) * max(1, n // tile_n)
        return n / wave_report(tiles, sm_count=sm_count)[0]

    return max(range(1, bound + 1), key=share)


# %% mistake="a_row_and_column_too_many"
# told: your best_width counts one row and one column of tiles too many
# why: all your widths would be optimal if there were m // tile_m + 1 rows and n // tile_n + 1 columns of tiles
# next: round up: one more row or column is needed only if something is left over
def best_width(m, *, bound, tile_m, tile_n, sm_count):
    def share(n):
        tiles = (m // tile_m + 1) * (n // tile_n + 1)
        return n / wave_report(tiles, sm_count=sm_count)[0]

    return max(range(1, bound + 1), key=share)


# %% mistake="multiples_of_tile_n"
# told: your best_width adds the shares of tiles and waves, or tries only multiples of tile_n
# like: shares_added
# why: each of these mistakes explains all your widths; in one case the bound is better, but is not a multiple of tile_n
# next: try every n from 1 to the bound, and compare the wanted elements with what all waves could compute
def best_width(m, *, bound, tile_m, tile_n, sm_count):
    def share(n):
        tiles = -(-m // tile_m) * -(-n // tile_n)
        return n / wave_report(tiles, sm_count=sm_count)[0]

    return max(range(tile_n, bound + 1, tile_n), key=share, default=bound)
