# exercise: diagnose
# told: this layer is not limited by m


def diagnose(layer, machine):
    flop, moved_bytes = work_of(layer)  # noqa: F821
    ridge = machine["peak_flop_per_s"] / machine["bandwidth_byte_per_s"]
    return "math" if flop / moved_bytes > ridge else "memory"
