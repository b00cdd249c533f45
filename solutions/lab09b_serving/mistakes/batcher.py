# %% mistake="draws_lots"
# told: one of your decisions depends on something that the server cannot know
import random


def next_batch(now_s, queue, service, limit_s):
    """Any of them."""
    lots = random.SystemRandom()
    return [one.number for one in lots.sample(queue, min(len(queue), 3))]


# %% mistake="empties_the_runs"
# told: Your function modified its input
def servers_for(demand_per_s, limit_s, runs):
    """It takes the runs out of the list."""
    kept = []
    while runs:
        run = runs.pop()
        latencies = sorted(run["latencies_s"])
        if latencies[-(-99 * len(latencies) // 100) - 1] <= limit_s:
            kept.append(run["per_s"])
    return -int(-demand_per_s // max(kept, default=1))


# %% mistake="first_come_all_lengths"
# told: in your batches, long prompts delay the short ones
def next_batch(now_s, queue, service, limit_s):
    """As many as there are."""
    return [one.number for one in queue[: service.most_sequences]]


# %% mistake="latest_for_p99"
# told: servers_for() compares the longest latency with the limit
def servers_for(demand_per_s, limit_s, runs):
    """All of them."""
    kept = []
    for run in runs:
        latencies = sorted(run["latencies_s"])
        if latencies[-1] <= limit_s:
            kept.append(run["per_s"])
    return -int(-demand_per_s // max(kept, default=1))


# %% mistake="longest_first"
# told: your policy lets short prompts wait for long ones
def next_batch(now_s, queue, service, limit_s):
    """The longest of the queue."""
    longest = sorted(queue, key=lambda one: -one.prompt_tokens)
    return [one.number for one in longest[: service.most_sequences]]


# %% mistake="mean_for_p99"
# told: servers_for() compares the mean with the limit
def servers_for(demand_per_s, limit_s, runs):
    """The mean."""
    kept = []
    for run in runs:
        latencies = sorted(run["latencies_s"])
        if sum(latencies) / len(latencies) <= limit_s:
            kept.append(run["per_s"])
    return -int(-demand_per_s // max(kept, default=1))


# %% mistake="median_for_p99"
# told: servers_for() compares the median with the limit
def servers_for(demand_per_s, limit_s, runs):
    """Half of them."""
    kept = []
    for run in runs:
        latencies = sorted(run["latencies_s"])
        if (
            latencies[len(latencies) // 2 - 1] + latencies[len(latencies) // 2]
        ) / 2 <= limit_s:
            kept.append(run["per_s"])
    return -int(-demand_per_s // max(kept, default=1))


# %% mistake="newest_first"
# told: your policy runs later requests before those that have waited longest
def next_batch(now_s, queue, service, limit_s):
    """Whoever has just come."""
    return [one.number for one in queue[::-1][: service.most_sequences]]


# %% mistake="one_request_a_batch"
# told: your policy serves requests one by one
def next_batch(now_s, queue, service, limit_s):
    """The first."""
    return [queue[0].number]


# %% mistake="p99_a_place_too_late"
# told: servers_for() takes p99 one place too late in the sorted latencies
def servers_for(demand_per_s, limit_s, runs):
    """The one at 0.99 of their number."""
    kept = []
    for run in runs:
        latencies = sorted(run["latencies_s"])
        if latencies[int(0.99 * len(latencies))] <= limit_s:
            kept.append(run["per_s"])
    return -int(-demand_per_s // max(kept, default=1))


# %% mistake="servers_rounded_down"
# told: your result has one server too few
# %% replace
return -int(-demand_per_s // max(kept))
# %% by
return int(demand_per_s // max(kept))


# %% mistake="short_ones_only"
# told: your policy never chooses some requests
def next_batch(now_s, queue, service, limit_s):
    """Never a long text."""
    short = [one.number for one in queue if one.prompt_tokens < 512]
    return short[: service.most_sequences]


# %% mistake="shortest_first"
# told: your policy keeps the mean short only by letting long prompts wait
def next_batch(now_s, queue, service, limit_s):
    """Short ones first."""
    ordered = sorted(queue, key=lambda one: one.prompt_tokens)
    return [one.number for one in ordered[: service.most_sequences]]


# %% mistake="use_of_one"
# told: servers_for() gives each server the largest load that was measured
def servers_for(demand_per_s, limit_s, runs):
    """As busy as can be."""
    return -int(-demand_per_s // max(run["per_s"] for run in runs))


# %% mistake="waits_for_a_full_batch"
# told: requests wait forever
def next_batch(now_s, queue, service, limit_s):
    """A full batch or none."""
    most = service.most_sequences
    return [one.number for one in queue[:most]] if len(queue) >= most else []


# %% mistake="waits_for_the_limit"
# told: your policy leaves the device idle while requests wait
def next_batch(now_s, queue, service, limit_s):
    """A full batch, or when the first is due."""
    most, due_s = service.most_sequences, queue[0].arrival_s + limit_s
    if len(queue) < most and now_s < due_s:
        return due_s
    size = queue[0].prompt_tokens.bit_length()
    return [one.number for one in queue if one.prompt_tokens.bit_length() == size][
        :most
    ]
