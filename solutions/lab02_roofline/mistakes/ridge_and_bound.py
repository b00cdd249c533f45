# %% mistake="fastest_dtype"
# told: your code uses the peak of another dtype
def lower_bound(machine, work, *, rightly=lower_bound):  # noqa: F821
    rates = machine["peak_flop_per_s"]
    return rightly(machine, {**work, "dtype": max(rates, key=rates.get)})


# %% mistake="last_name_of_all"
# told: your code compares names, or looks only at the arithmetic
def ridge_point(machine, dtype, level):
    return machine["peak_flop_per_s"][dtype] / machine["bandwidth_byte_per_s"][level]


def lower_bound(machine, work):
    times = {
        level: moved / machine["bandwidth_byte_per_s"][level]
        for level, moved in work["moved_bytes"].items()
    }
    times["compute"] = work["flop"] / machine["peak_flop_per_s"][work["dtype"]]
    limiter = max(times)
    return times[limiter], limiter


# %% mistake="main_memory_only"
# told: of the memory levels, your code looks only at the main memory
def lower_bound(machine, work):
    level = list(work["moved_bytes"])[-1]
    memory_s = work["moved_bytes"][level] / machine["bandwidth_byte_per_s"][level]
    compute_s = work["flop"] / machine["peak_flop_per_s"][work["dtype"]]
    return max(memory_s, compute_s), level if memory_s > compute_s else "compute"


# %% mistake="one_after_the_other"
# told: your code adds up times that overlap
def lower_bound(machine, work):
    times_s = {
        level: n / machine["bandwidth_byte_per_s"][level]
        for level, n in work["moved_bytes"].items()
    }
    times_s["compute"] = work["flop"] / machine["peak_flop_per_s"][work["dtype"]]
    return sum(times_s.values()), max(times_s, key=times_s.get)


# %% mistake="ridge_upside_down"
# told: your answer is in bytes per FLOP
def ridge_point(machine, dtype, level):
    return machine["bandwidth_byte_per_s"][level] / machine["peak_flop_per_s"][dtype]


# %% mistake="last_level_below_its_ridge"
# told: 'HBM' does not limit this work
def lower_bound(machine, work, *, rightly=lower_bound):  # noqa: F821
    time_s, limiter = rightly(machine, work)[0], "compute"
    for level, moved in work["moved_bytes"].items():
        if work["flop"] < moved * ridge_point(machine, work["dtype"], level):
            limiter = level
    return time_s, limiter
