# exercise: peak_from_clock
# told: the two units were added up


def peak_flop_per_s(row, dtype, *, sm_count, clock_mhz):
    return 2e6 * clock_mhz * sm_count * sum(unit.get(dtype, 0) for unit in row.values())
