# exercise: peak_from_clock
# told: your code raised KeyError for a dtype that a unit does not have


def peak_flop_per_s(row, dtype, *, sm_count, clock_mhz):
    return 2e6 * clock_mhz * sm_count * max(unit[dtype] for unit in row.values())
