# exercise: read_plan
# told: the plan reads what nobody wants


def read_plan(wanted, *, seek_s, byte_per_s):
    plan = {}
    for shard, start, stop in wanted:
        low, high = plan.get(shard, (start, stop))
        plan[shard] = (min(low, start), max(high, stop))
    return [(shard, low, high) for shard, (low, high) in sorted(plan.items())]
