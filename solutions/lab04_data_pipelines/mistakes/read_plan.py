# %% mistake="a_seek_is_worth_more"
# told: your plan reads unwanted data
# like: whole_shards
def read_plan(wanted, *, seek_s, byte_per_s):
    plan = []
    for shard, start, stop in sorted(wanted):
        if (
            plan
            and plan[-1][0] == shard
            and start - plan[-1][2] <= 1.25 * seek_s * byte_per_s
        ):
            plan[-1] = (shard, plan[-1][1], stop)
        else:
            plan.append((shard, start, stop))
    return plan


# %% mistake="as_it_was_asked"
# told: your plan does not read in the order of the disk
def read_plan(wanted, *, seek_s, byte_per_s):
    return list(wanted)


# %% mistake="last_sample_cut_off"
# told: your plan leaves out wanted samples
# %% replace
plan[-1] = (shard, plan[-1][1], stop)
# %% by
plan[-1] = (shard, plan[-1][1], start)


# %% mistake="one_read_a_sample"
# told: your plan reads every sample separately
def read_plan(wanted, *, seek_s, byte_per_s):
    return sorted(wanted)


# %% mistake="whole_shards"
# told: your plan reads unwanted data
def read_plan(wanted, *, seek_s, byte_per_s):
    plan = {}
    for shard, start, stop in wanted:
        low, high = plan.get(shard, (start, stop))
        plan[shard] = (min(low, start), max(high, stop))
    return [(shard, low, high) for shard, (low, high) in sorted(plan.items())]
