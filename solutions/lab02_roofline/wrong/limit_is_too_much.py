# exercise: scaling_plan
# told: more nodes are efficient enough
# like: no_sending_hides.py


def plan(job, cluster, *, rightly=plan):  # noqa: F821
    return rightly({**job, "largest_batch": job["largest_batch"] - 1}, cluster)
