# %% mistake="adds_both_times"
# told: your function adds the times for computing and moving
# %% replace
longer_s = max(computes_s, moved / machine["memory_byte_per_s"])
# %% by
longer_s = computes_s + moved / machine["memory_byte_per_s"]


# %% mistake="batch_of_one_gpu"
# told: your function uses one GPU's best batch for every number of GPUs
def fewest_gpus(job, machine, deadline_s):
    """One batch for all."""
    one = best_batch(job, machine, 1)
    for gpus in range(1, machine["most_gpus"] + 1):
        if quality_s(job, machine, -(-one // gpus) * gpus, gpus) <= deadline_s:
            return gpus
    return None


# %% mistake="critical_batch"
# told: your function chooses the critical batch, but training can end sooner with another batch
def best_batch(job, machine, gpus):
    """The critical one."""
    critical = -(-job["critical_batch"] // gpus) * gpus
    return min(gpus * machine["most_samples"], critical)


# %% mistake="fastest_number"
# told: your function returns the number of GPUs that trains fastest, not the fewest GPUs in time
def fewest_gpus(job, machine, deadline_s):
    """The fastest."""

    def ends_s(gpus):
        return quality_s(job, machine, best_batch(job, machine, gpus), gpus)

    best = min(range(1, machine["most_gpus"] + 1), key=ends_s)
    return best if ends_s(best) <= deadline_s else None


# %% mistake="fewest_by_halving"
# told: your function skips numbers of GPUs, as if one more GPU always made training faster
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
# told: your function does not try machine['most_gpus'] GPUs
def fewest_gpus(job, machine, deadline_s):
    """Ends before the last."""
    for gpus in range(1, machine["most_gpus"]):
        batch = best_batch(job, machine, gpus)
        if quality_s(job, machine, batch, gpus) <= deadline_s:
            return gpus
    return None


# %% mistake="late_on_the_dot"
# told: your function rejects a training run that ends exactly at the deadline
# %% replace
if quality_s(job, machine, batch, gpus) <= deadline_s:
    return gpus
# %% by
if quality_s(job, machine, batch, gpus) < deadline_s:
    return gpus


# %% mistake="law_of_one_gpu"
# told: your function evaluates the law with the samples of one GPU
# %% replace
steps = job["steps"] * (1 + job["critical_batch"] / batch)
# %% by
steps = job["steps"] * (1 + job["critical_batch"] * gpus / batch)


# %% mistake="law_upside_down"
# told: your function inverts the quotient of batch and critical batch
# %% replace
steps = job["steps"] * (1 + job["critical_batch"] / batch)
# %% by
steps = job["steps"] * (1 + batch / job["critical_batch"])


# %% mistake="memory_of_one_gpu"
# told: your function limits the batch to the memory of one GPU
# %% replace
batches = range(gpus, gpus * machine["most_samples"] + 1, gpus)
# %% by
batches = range(gpus, max(gpus, machine["most_samples"]) + 1, gpus)


# %% mistake="most_samples_a_second"
# told: your function chooses the largest batch, but training can end sooner with a smaller one
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
# told: your function leaves out the minimum number of steps
# %% replace
steps = job["steps"] * (1 + job["critical_batch"] / batch)
# %% by
steps = job["steps"] * job["critical_batch"] / batch


# %% mistake="no_memory"
# told: your batch does not fit
# %% replace
batches = range(gpus, gpus * machine["most_samples"] + 1, gpus)
# %% by
batches = range(gpus, 20 * gpus * machine["most_samples"] + 1, gpus)


# %% mistake="no_overhead"
# told: your function leaves out the overhead of a step
# %% replace
return longer_s + machine["overhead_s"] + sums_s
# %% by
return longer_s + 0.0 + sums_s


# %% mistake="one_gpu_too_many"
# told: your function uses more than machine['most_gpus'] GPUs
def fewest_gpus(job, machine, deadline_s):
    """One behind the last."""
    for gpus in range(1, machine["most_gpus"] + 2):
        batch = best_batch(job, machine, gpus)
        if quality_s(job, machine, batch, gpus) <= deadline_s:
            return gpus
    return None


# %% mistake="powers_of_two"
# told: your function tries only powers of two as numbers of GPUs
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
# told: your function assumes that n GPUs train n times as fast as one GPU
def fewest_gpus(job, machine, deadline_s):
    """Linear."""
    batch = best_batch(job, machine, 1)
    gpus = -int(-quality_s(job, machine, batch, 1) // deadline_s)
    return gpus if gpus <= machine["most_gpus"] else None


# %% mistake="shorter_time"
# told: your function takes the shorter of the two times
# %% replace
longer_s = max(computes_s, moved / machine["memory_byte_per_s"])
# %% by
longer_s = min(computes_s, moved / machine["memory_byte_per_s"])


# %% mistake="shortest_step"
# told: your function chooses the batch with the shortest step, but training can end sooner with a larger one
def best_batch(job, machine, gpus):
    """The smallest."""
    return gpus


# %% mistake="steps_fixed"
# told: your number of steps does not depend on the batch
# %% replace
steps = job["steps"] * (1 + job["critical_batch"] / batch)
# %% by
steps = job["steps"]


# %% mistake="sums_for_nothing"
# told: your function leaves out the wait for the sum over GPUs, or hides it behind computing
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
# told: your function does not try a single GPU
def fewest_gpus(job, machine, deadline_s):
    """Begins with two."""
    for gpus in range(2, machine["most_gpus"] + 1):
        if quality_s(job, machine, best_batch(job, machine, gpus), gpus) <= deadline_s:
            return gpus
    return None


# %% mistake="two_samples_a_gpu"
# told: your function does not try one sample per GPU
# %% replace
batches = range(gpus, gpus * machine["most_samples"] + 1, gpus)
# %% by
batches = range(2 * gpus, gpus * machine["most_samples"] + 1, gpus)


# %% mistake="weights_a_sample"
# told: your function moves the weights for every sample
# %% replace
moved = job["weight_bytes"] + samples * job["sample_bytes"]
# %% by
moved = samples * (job["weight_bytes"] + job["sample_bytes"])


# %% mistake="weights_do_not_move"
# told: your function leaves out the bytes of the weights
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
