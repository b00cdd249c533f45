# %% mistake="adds_both_times"
# told: computing and moving are added
# %% replace
longer_s = max(computes_s, moved / machine["memory_byte_per_s"])
# %% by
longer_s = computes_s + moved / machine["memory_byte_per_s"]


# %% mistake="batch_of_one_gpu"
# told: each number of GPUs has a best batch of its own
def fewest_gpus(job, machine, deadline_s):
    """One batch for all."""
    one = best_batch(job, machine, 1)
    for gpus in range(1, machine["most_gpus"] + 1):
        if quality_s(job, machine, -(-one // gpus) * gpus, gpus) <= deadline_s:
            return gpus
    return None


# %% mistake="critical_batch"
# told: the critical batch is not the one that ends first
def best_batch(job, machine, gpus):
    """The critical one."""
    critical = -(-job["critical_batch"] // gpus) * gpus
    return min(gpus * machine["most_samples"], critical)


# %% mistake="fastest_number"
# told: the fewest GPUs are asked, not the fastest
def fewest_gpus(job, machine, deadline_s):
    """The fastest."""

    def ends_s(gpus):
        return quality_s(job, machine, best_batch(job, machine, gpus), gpus)

    best = min(range(1, machine["most_gpus"] + 1), key=ends_s)
    return best if ends_s(best) <= deadline_s else None


# %% mistake="fewest_by_halving"
# told: one GPU more is not always faster, so numbers cannot be skipped
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
# told: machine['most_gpus'] GPUs may be used, too
def fewest_gpus(job, machine, deadline_s):
    """Ends before the last."""
    for gpus in range(1, machine["most_gpus"]):
        batch = best_batch(job, machine, gpus)
        if quality_s(job, machine, batch, gpus) <= deadline_s:
            return gpus
    return None


# %% mistake="late_on_the_dot"
# told: what ends exactly at the deadline is in time
# %% replace
if quality_s(job, machine, batch, gpus) <= deadline_s:
    return gpus
# %% by
if quality_s(job, machine, batch, gpus) < deadline_s:
    return gpus


# %% mistake="law_of_one_gpu"
# told: the law was evaluated with one GPU's samples
# %% replace
steps = job["steps"] * (1 + job["critical_batch"] / batch)
# %% by
steps = job["steps"] * (1 + job["critical_batch"] * gpus / batch)


# %% mistake="law_upside_down"
# told: the ratio of batch and critical batch is inverted
# %% replace
steps = job["steps"] * (1 + job["critical_batch"] / batch)
# %% by
steps = job["steps"] * (1 + batch / job["critical_batch"])


# %% mistake="memory_of_one_gpu"
# told: each GPU has memory of its own
# %% replace
batches = range(gpus, gpus * machine["most_samples"] + 1, gpus)
# %% by
batches = range(gpus, max(gpus, machine["most_samples"]) + 1, gpus)


# %% mistake="most_samples_a_second"
# told: neither most samples a second nor fewest steps end first
# %% replace
return min(batches, key=lambda batch: quality_s(job, machine, batch, gpus))
# %% by
return max(batches, key=lambda batch: batch / step_s(job, machine, batch, gpus))


# %% mistake="never_says_none"
# told: no number of GPUs is in time
# %% replace
return gpus
# %% by
break
# %% replace
return None
# %% by
return gpus


# %% mistake="no_least_steps"
# told: the least number of steps is left out
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
# told: what a step costs besides is left out
# %% replace
return longer_s + machine["overhead_s"] + sums_s
# %% by
return longer_s + 0.0 + sums_s


# %% mistake="one_gpu_too_many"
# told: there are no more than machine['most_gpus'] GPUs
def fewest_gpus(job, machine, deadline_s):
    """One behind the last."""
    for gpus in range(1, machine["most_gpus"] + 2):
        batch = best_batch(job, machine, gpus)
        if quality_s(job, machine, batch, gpus) <= deadline_s:
            return gpus
    return None


# %% mistake="powers_of_two"
# told: a number of GPUs need not be a power of two
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
# told: GPUs do not share a training evenly
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
# told: the shortest step does not end first
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
# told: the sum over GPUs is left out, or hidden behind computing
# %% replace
sums_s = machine["sync_s"] if gpus > 1 else 0.0
# %% by
sums_s = 0.0


# %% mistake="sums_with_itself"
# told: a single GPU has no other to sum with
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
# told: one sample a GPU is not tried
# %% replace
batches = range(gpus, gpus * machine["most_samples"] + 1, gpus)
# %% by
batches = range(2 * gpus, gpus * machine["most_samples"] + 1, gpus)


# %% mistake="weights_a_sample"
# told: weights are moved for each sample
# %% replace
moved = job["weight_bytes"] + samples * job["sample_bytes"]
# %% by
moved = samples * (job["weight_bytes"] + job["sample_bytes"])


# %% mistake="weights_do_not_move"
# told: the weights' bytes are left out
# %% replace
moved = job["weight_bytes"] + samples * job["sample_bytes"]
# %% by
# %% replace
longer_s = max(computes_s, moved / machine["memory_byte_per_s"])
# %% by
longer_s = max(computes_s, samples * job["sample_bytes"] / machine["memory_byte_per_s"])


# %% mistake="whole_batch_each"
# told: each GPU takes the whole batch
# %% replace
samples = batch / gpus
# %% by
samples = batch
