# exercise: storage_format
# told: only the columns that are read had to fit into the page cache


def format_cost_s(form, access, disk, *, rightly=format_cost_s):  # noqa: F821
    share = access["column_share"] if form["columnar"] else 1
    kept = access["samples"] * form["sample_bytes"] * share <= disk["cache_bytes"]
    return rightly(form, access, {**disk, "cache_bytes": 1 << 60 if kept else 0})
