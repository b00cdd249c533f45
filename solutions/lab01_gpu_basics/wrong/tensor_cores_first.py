# exercise: peak_from_clock
# told: the slower unit was taken


def peak_flop_per_s(row, dtype, *, sm_count, clock_mhz):
    each = row["tensor"].get(dtype) or row["cuda"].get(dtype, 0)
    return 2e6 * clock_mhz * sm_count * each
