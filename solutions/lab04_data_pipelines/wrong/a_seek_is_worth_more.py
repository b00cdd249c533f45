# exercise: read_plan
# told: the plan reads what nobody wants
# like: whole_shards.py


def read_plan(wanted, *, seek_s, byte_per_s):
    plan = []
    for shard, start, stop in sorted(wanted):
        if plan and plan[-1][0] == shard and start - plan[-1][2] <= 1.25 * seek_s * byte_per_s:
            plan[-1] = (shard, plan[-1][1], stop)
        else:
            plan.append((shard, start, stop))
    return plan
