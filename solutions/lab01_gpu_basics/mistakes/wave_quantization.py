# %% mistake="as_wide_as_allowed"
# told: the widest matrix is not the best filled one
def best_width(m, *, bound, tile_m, tile_n, sm_count):
    return bound


# %% mistake="bound_left_out"
# told: another width uses the machine better
def best_width(m, *, bound, tile_m, tile_n, sm_count):
    def share(n):
        tiles = -(-m // tile_m) * -(-n // tile_n)
        return n / wave_report(tiles, sm_count=sm_count)[0]

    return max(range(1, bound), key=share)


# %% mistake="full_wave_has_room"
# told: a full wave was offered more tiles
def wave_report(tiles, *, sm_count, rightly=wave_report):  # noqa: F821
    waves, efficiency, _ = rightly(tiles, sm_count=sm_count)
    return waves, efficiency, sm_count - tiles % sm_count


# %% mistake="last_wave_forgotten"
# told: the last wave was forgotten
def wave_report(tiles, *, sm_count):
    waves = max(1, tiles // sm_count)
    return waves, min(1.0, tiles / (waves * sm_count)), max(0, waves * sm_count - tiles)


# %% mistake="only_the_last_wave"
# told: that is how full the last wave is
def wave_report(tiles, *, sm_count):
    left = tiles % sm_count or sm_count
    return (tiles - left) // sm_count + 1, left / sm_count, sm_count - left


# %% mistake="shares_added"
# told: the tiles are full, but the waves are not
# like: whole_tiles_only
def best_width(m, *, bound, tile_m, tile_n, sm_count):
    def share(n):
        tiles = -(-m // tile_m) * -(-n // tile_n)
        return (
            m * n / (tiles * tile_m * tile_n) + wave_report(tiles, sm_count=sm_count)[1]
        )

    return max(range(1, bound + 1), key=share)


# %% mistake="whole_tiles_only"
# told: the tiles are full, but the waves are not
def best_width(m, *, bound, tile_m, tile_n, sm_count):
    return bound // tile_n * tile_n
