# exercise: peak_from_clock
# told: a fused multiply-add was counted as one operation


def peak_flop_per_s(row, dtype, *, sm_count, clock_mhz):
    return 1e6 * clock_mhz * sm_count * max(unit.get(dtype, 0) for unit in row.values())
