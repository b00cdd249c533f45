# %% mistake="all_sending_hides"
# told: in your plans, a step on many nodes is too short with both kinds of scaling
def plan(job, cluster, *, rightly=plan):  # noqa: F821
    return rightly({**job, "buckets": 10**9}, cluster)


# %% mistake="all_the_nodes"
# told: your code does not divide the speed-up of strong scaling by the number of nodes, or accepts every speed-up
def plan(job, cluster, *, rightly=plan):  # noqa: F821
    scaling, nodes = rightly(job, cluster)
    return scaling, cluster["nodes"] if scaling == "strong" else nodes


# %% mistake="batch_without_end"
# told: you chose weak scaling, but it does not reach more nodes than strong scaling here
def plan(job, cluster, *, rightly=plan):  # noqa: F821
    return rightly({**job, "largest_batch": 10**12}, cluster)


# %% mistake="limit_is_too_much"
# told: your code excludes a batch of exactly largest_batch
def plan(job, cluster, *, rightly=plan):  # noqa: F821
    return rightly({**job, "largest_batch": job["largest_batch"] - 1}, cluster)


# %% mistake="never_more_than_one"
# told: your plan rejects scaling, but more than one node is useful here
def plan(job, cluster):
    return "none", 1


# %% mistake="no_sending_hides"
# told: in your plans, sending costs too much with both kinds of scaling
def plan(job, cluster, *, rightly=plan):  # noqa: F821
    return rightly({**job, "buckets": 1}, cluster)


# %% mistake="ties_go_strong"
# told: you chose strong scaling, but it does not reach more nodes than weak scaling here
def plan(job, cluster, *, rightly=plan):  # noqa: F821
    scaling, nodes = rightly(job, cluster)
    _, strong = rightly({**job, "largest_batch": job["batch"]}, cluster)
    return (
        ("strong", nodes) if scaling == "weak" and strong == nodes else (scaling, nodes)
    )
