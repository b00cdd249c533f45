# %% mistake="adds_both_times"
# told: computing and moving are added
# %% replace
longer_s = max(computes_s, moved / machine["memory_byte_per_s"])
# %% by
longer_s = computes_s + moved / machine["memory_byte_per_s"]


# %% mistake="batch_of_one_gpu"
# told: one GPU's best batch is used for every number of GPUs
def fewest_gpus(job, machine, deadline_s):
    """One batch for all."""
    one = best_batch(job, machine, 1)
    for gpus in range(1, machine["most_gpus"] + 1):
        if quality_s(job, machine, -(-one // gpus) * gpus, gpus) <= deadline_s:
            return gpus
    return None


# %% mistake="critical_batch"
# told: the critical batch is chosen, but training does not end soonest with it
def best_batch(job, machine, gpus):
    """The critical one."""
    critical = -(-job["critical_batch"] // gpus) * gpus
    return min(gpus * machine["most_samples"], critical)


# %% mistake="fastest_number"
# told: the fastest number of GPUs is returned, not the fewest
def fewest_gpus(job, machine, deadline_s):
    """The fastest."""

    def ends_s(gpus):
        return quality_s(job, machine, best_batch(job, machine, gpus), gpus)

    best = min(range(1, machine["most_gpus"] + 1), key=ends_s)
    return best if ends_s(best) <= deadline_s else None


# %% mistake="fewest_by_halving"
# told: numbers of GPUs are skipped, as if one more GPU were always faster
def fewest_gpus(job, machine, deadline_s):
    """Halves the range, as if each GPU more were faster."""

    def ends_in_time(gpus):
        return (
            quality_s(job, machine, best_batch(job, machine, gpus), gpus) <= deadline_s
        )

    low, high = 1, machine["most_gpus"]
    if not ends_in_time(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if ends_in_time(middle):
            high = middle
        else:
            low = middle + 1
    return low


# %% mistake="last_gpu_left_out"
# told: machine['most_gpus'] GPUs are not tried
def fewest_gpus(job, machine, deadline_s):
    """Ends before the last."""
    for gpus in range(1, machine["most_gpus"]):
        batch = best_batch(job, machine, gpus)
        if quality_s(job, machine, batch, gpus) <= deadline_s:
            return gpus
    return None


# %% mistake="late_on_the_dot"
# told: a training that ends exactly at the deadline is rejected
# %% replace
if quality_s(job, machine, batch, gpus) <= deadline_s:
    return gpus
# %% by
if quality_s(job, machine, batch, gpus) < deadline_s:
    return gpus


# %% mistake="law_of_one_gpu"
# told: the law is evaluated with the samples of one GPU
# %% replace
steps = job["steps"] * (1 + job["critical_batch"] / batch)
# %% by
steps = job["steps"] * (1 + job["critical_batch"] * gpus / batch)


# %% mistake="law_upside_down"
# told: the quotient of batch and critical batch is inverted
# %% replace
steps = job["steps"] * (1 + job["critical_batch"] / batch)
# %% by
steps = job["steps"] * (1 + batch / job["critical_batch"])


# %% mistake="memory_of_one_gpu"
# told: the batch is limited to the memory of one GPU
# %% replace
batches = range(gpus, gpus * machine["most_samples"] + 1, gpus)
# %% by
batches = range(gpus, max(gpus, machine["most_samples"]) + 1, gpus)


# %% mistake="most_samples_a_second"
# told: the largest batch is chosen, but training does not end soonest with it
# %% replace
return min(batches, key=lambda batch: quality_s(job, machine, batch, gpus))
# %% by
return max(batches, key=lambda batch: batch / step_s(job, machine, batch, gpus))


# %% mistake="never_says_none"
# told: your function returned a number, but no number of GPUs meets the deadline
# %% replace
return gpus
# %% by
break
# %% replace
return None
# %% by
return gpus


# %% mistake="no_least_steps"
# told: the minimum number of steps is missing
# %% replace
steps = job["steps"] * (1 + job["critical_batch"] / batch)
# %% by
steps = job["steps"] * job["critical_batch"] / batch


# %% mistake="no_memory"
# told: the batch does not fit
# %% replace
batches = range(gpus, gpus * machine["most_samples"] + 1, gpus)
# %% by
batches = range(gpus, 20 * gpus * machine["most_samples"] + 1, gpus)


# %% mistake="no_overhead"
# told: the overhead of a step is missing
# %% replace
return longer_s + machine["overhead_s"] + sums_s
# %% by
return longer_s + 0.0 + sums_s


# %% mistake="one_gpu_too_many"
# told: more than machine['most_gpus'] GPUs are used
def fewest_gpus(job, machine, deadline_s):
    """One behind the last."""
    for gpus in range(1, machine["most_gpus"] + 2):
        batch = best_batch(job, machine, gpus)
        if quality_s(job, machine, batch, gpus) <= deadline_s:
            return gpus
    return None


# %% mistake="powers_of_two"
# told: only powers of two are tried as numbers of GPUs
def fewest_gpus(job, machine, deadline_s):
    """1, 2, 4, 8."""
    gpus = 1
    while gpus <= machine["most_gpus"]:
        batch = best_batch(job, machine, gpus)
        if quality_s(job, machine, batch, gpus) <= deadline_s:
            return gpus
        gpus *= 2
    return None


# %% mistake="shared_evenly"
# told: the training time is assumed to be inversely proportional to the number of GPUs
def fewest_gpus(job, machine, deadline_s):
    """Linear."""
    batch = best_batch(job, machine, 1)
    gpus = -int(-quality_s(job, machine, batch, 1) // deadline_s)
    return gpus if gpus <= machine["most_gpus"] else None


# %% mistake="shorter_time"
# told: the shorter of two times is taken
# %% replace
longer_s = max(computes_s, moved / machine["memory_byte_per_s"])
# %% by
longer_s = min(computes_s, moved / machine["memory_byte_per_s"])


# %% mistake="shortest_step"
# told: the batch with the shortest step is chosen, but training does not end soonest with it
def best_batch(job, machine, gpus):
    """The smallest."""
    return gpus


# %% mistake="steps_fixed"
# told: the number of steps does not depend on the batch
# %% replace
steps = job["steps"] * (1 + job["critical_batch"] / batch)
# %% by
steps = job["steps"]


# %% mistake="sums_for_nothing"
# told: the wait for the sum over GPUs is missing, or hidden behind computing
# %% replace
sums_s = machine["sync_s"] if gpus > 1 else 0.0
# %% by
sums_s = 0.0


# %% mistake="sums_with_itself"
# told: a single GPU waits for a sum over GPUs
# %% replace
sums_s = machine["sync_s"] if gpus > 1 else 0.0
# %% by
sums_s = machine["sync_s"]


# %% mistake="two_gpus_at_least"
# told: a single GPU is not tried
def fewest_gpus(job, machine, deadline_s):
    """Begins with two."""
    for gpus in range(2, machine["most_gpus"] + 1):
        if quality_s(job, machine, best_batch(job, machine, gpus), gpus) <= deadline_s:
            return gpus
    return None


# %% mistake="two_samples_a_gpu"
# told: one sample per GPU is not tried
# %% replace
batches = range(gpus, gpus * machine["most_samples"] + 1, gpus)
# %% by
batches = range(2 * gpus, gpus * machine["most_samples"] + 1, gpus)


# %% mistake="weights_a_sample"
# told: the weights are moved for every sample
# %% replace
moved = job["weight_bytes"] + samples * job["sample_bytes"]
# %% by
moved = samples * (job["weight_bytes"] + job["sample_bytes"])


# %% mistake="weights_do_not_move"
# told: the bytes of the weights are missing
# %% replace
moved = job["weight_bytes"] + samples * job["sample_bytes"]
# %% by
# %% replace
longer_s = max(computes_s, moved / machine["memory_byte_per_s"])
# %% by
longer_s = max(computes_s, samples * job["sample_bytes"] / machine["memory_byte_per_s"])


# %% mistake="whole_batch_each"
# told: each GPU computes the whole batch
# %% replace
samples = batch / gpus
# %% by
samples = batch
