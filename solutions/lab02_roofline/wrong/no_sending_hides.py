# exercise: scaling_plan
# told: sending costs too much in this plan, with both kinds of scaling


def plan(job, cluster, *, rightly=plan):  # noqa: F821
    return rightly({**job, "buckets": 1}, cluster)
