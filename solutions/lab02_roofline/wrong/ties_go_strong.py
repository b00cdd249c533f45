# exercise: scaling_plan
# told: strong scaling does not reach further here


def plan(job, cluster, *, rightly=plan):  # noqa: F821
    scaling, nodes = rightly(job, cluster)
    _, strong = rightly({**job, "largest_batch": job["batch"]}, cluster)
    return ("strong", nodes) if scaling == "weak" and strong == nodes else (scaling, nodes)
