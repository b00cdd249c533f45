# exercise: scaling_plan
# told: the efficiency is too low with that many nodes
# like: all_the_nodes.py


def plan(job, cluster, *, rightly=plan):  # noqa: F821
    return rightly({**job, "buckets": 10**9}, cluster)
