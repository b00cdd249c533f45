# exercise: scaling_plan
# told: more nodes are efficient enough


def plan(job, cluster, *, rightly=plan):  # noqa: F821
    return rightly({**job, "buckets": 1}, cluster)
