# exercise: peak_from_clock
# told: the clock was taken as Hz


def peak_flop_per_s(row, dtype, *, sm_count, clock_mhz):
    return 2 * clock_mhz * sm_count * max(unit.get(dtype, 0) for unit in row.values())
