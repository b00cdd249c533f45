# exercise: ridge_and_bound
# told: that is bytes per FLOP


def ridge_point(machine, dtype, level):
    return machine["bandwidth_byte_per_s"][level] / machine["peak_flop_per_s"][dtype]
