# %% mistake="all_columns_paid"
# told: your cost includes columns that are not read
def format_cost_s(form, access, disk):
    scattered = access["order"] == "random"
    reads = access["reads"] if scattered else access["samples"]
    nbytes = (
        max(form["sample_bytes"], form["unit_bytes"])
        if scattered
        else form["sample_bytes"]
    )
    disk_s = (reads if scattered else 1) * disk["seek_s"] + reads * nbytes / disk[
        "byte_per_s"
    ]
    cpu_s = reads * (form["opens_per_sample"] * disk["open_s"] + form["parse_s"])
    cached = access["samples"] * form["sample_bytes"] <= disk["cache_bytes"]
    return access["epochs"] * cpu_s + disk_s * (1 if cached else access["epochs"])


# %% mistake="no_page_cache"
# told: your code leaves out the page cache
def format_cost_s(form, access, disk):
    scattered = access["order"] == "random"
    reads = access["reads"] if scattered else access["samples"]
    nbytes = form["sample_bytes"] * (access["column_share"] if form["columnar"] else 1)
    nbytes = max(nbytes, form["unit_bytes"]) if scattered else nbytes
    seeks = reads if scattered else 1
    cpu_s = reads * (form["opens_per_sample"] * disk["open_s"] + form["parse_s"])
    return access["epochs"] * (
        cpu_s + seeks * disk["seek_s"] + reads * nbytes / disk["byte_per_s"]
    )


# %% mistake="only_columns_that_are_read_are_kept"
# told: your code compares only the columns that are read with the page cache
def format_cost_s(form, access, disk, *, rightly=format_cost_s):  # noqa: F821
    share = access["column_share"] if form["columnar"] else 1
    kept = access["samples"] * form["sample_bytes"] * share <= disk["cache_bytes"]
    return rightly(form, access, {**disk, "cache_bytes": 1 << 60 if kept else 0})


# %% mistake="picks_the_smallest"
# told: is not the cheapest format
def pick_format(forms, access, disk):
    return min(forms, key=lambda form: form["sample_bytes"])["name"]


# %% mistake="reads_fetch_exactly_a_sample"
# told: your code leaves out the smallest unit that a random read fetches
def format_cost_s(form, access, disk):
    scattered = access["order"] == "random"
    reads = access["reads"] if scattered else access["samples"]
    nbytes = form["sample_bytes"] * (access["column_share"] if form["columnar"] else 1)
    disk_s = (reads if scattered else 1) * disk["seek_s"] + reads * nbytes / disk[
        "byte_per_s"
    ]
    cpu_s = reads * (form["opens_per_sample"] * disk["open_s"] + form["parse_s"])
    cached = access["samples"] * form["sample_bytes"] <= disk["cache_bytes"]
    return access["epochs"] * cpu_s + disk_s * (1 if cached else access["epochs"])


# %% mistake="what_just_fits_does_not"
# told: your code assumes that a data set exactly as large as the page cache does not fit into it
def format_cost_s(form, access, disk):
    scattered = access["order"] == "random"
    reads = access["reads"] if scattered else access["samples"]
    nbytes = form["sample_bytes"] * (access["column_share"] if form["columnar"] else 1)
    nbytes = max(nbytes, form["unit_bytes"]) if scattered else nbytes
    disk_s = (reads if scattered else 1) * disk["seek_s"] + reads * nbytes / disk[
        "byte_per_s"
    ]
    cpu_s = reads * (form["opens_per_sample"] * disk["open_s"] + form["parse_s"])
    cached = access["samples"] * form["sample_bytes"] < disk["cache_bytes"]
    return access["epochs"] * cpu_s + disk_s * (1 if cached else access["epochs"])


# %% mistake="picked_by_the_first_epoch"
# told: lmdb is not the cheapest format
def pick_format(forms, access, disk):
    once = access | {"epochs": 1}
    return min(forms, key=lambda form: format_cost_s(form, once, disk))["name"]
