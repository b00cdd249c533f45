# exercise: ridge_and_bound
# told: only the main memory was looked at


def lower_bound(machine, work):
    level = list(work["moved_bytes"])[-1]
    memory_s = work["moved_bytes"][level] / machine["bandwidth_byte_per_s"][level]
    compute_s = work["flop"] / machine["peak_flop_per_s"][work["dtype"]]
    return max(memory_s, compute_s), level if memory_s > compute_s else "compute"
