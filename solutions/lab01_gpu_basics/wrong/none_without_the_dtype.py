# exercise: peak_from_clock
# told: None came back for a dtype that the SM does not have


def peak_flop_per_s(row, dtype, *, sm_count, clock_mhz):
    known = [unit[dtype] for unit in row.values() if dtype in unit]
    return 2e6 * clock_mhz * sm_count * max(known) if known else None
