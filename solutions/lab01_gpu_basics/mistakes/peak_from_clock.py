# %% mistake="both_units_at_once"
# told: your code adds up the rates of the two units
def peak_flop_per_s(row, dtype, *, sm_count, clock_mhz):
    return 2e6 * clock_mhz * sm_count * sum(unit.get(dtype, 0) for unit in row.values())


# %% mistake="clock_in_hz"
# told: your code treats the clock as Hz
def peak_flop_per_s(row, dtype, *, sm_count, clock_mhz):
    return 2 * clock_mhz * sm_count * max(unit.get(dtype, 0) for unit in row.values())


# %% mistake="fma_is_one_operation"
# told: your code counts a fused multiply-add as one operation
def peak_flop_per_s(row, dtype, *, sm_count, clock_mhz):
    return 1e6 * clock_mhz * sm_count * max(unit.get(dtype, 0) for unit in row.values())


# %% mistake="looks_every_dtype_up"
# told: your code raised KeyError for a dtype that a unit does not have
def peak_flop_per_s(row, dtype, *, sm_count, clock_mhz):
    return 2e6 * clock_mhz * sm_count * max(unit[dtype] for unit in row.values())


# %% mistake="none_without_the_dtype"
# told: your function returned None for a dtype that the SM does not have
def peak_flop_per_s(row, dtype, *, sm_count, clock_mhz):
    known = [unit[dtype] for unit in row.values() if dtype in unit]
    return 2e6 * clock_mhz * sm_count * max(known) if known else None


# %% mistake="tensor_cores_first"
# told: your code chooses the slower unit
def peak_flop_per_s(row, dtype, *, sm_count, clock_mhz):
    each = row["tensor"].get(dtype) or row["cuda"].get(dtype, 0)
    return 2e6 * clock_mhz * sm_count * each
