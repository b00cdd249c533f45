# exercise: scaling_plan
# told: a step of many nodes is too short in this plan, with both kinds of scaling


def plan(job, cluster, *, rightly=plan):  # noqa: F821
    return rightly({**job, "buckets": 10**9}, cluster)
