# exercise: storage_format
# told: a data set just as large as the page cache fits into it


def format_cost_s(form, access, disk):
    scattered = access["order"] == "random"
    reads = access["reads"] if scattered else access["samples"]
    nbytes = form["sample_bytes"] * (access["column_share"] if form["columnar"] else 1)
    nbytes = max(nbytes, form["unit_bytes"]) if scattered else nbytes
    disk_s = (reads if scattered else 1) * disk["seek_s"] + reads * nbytes / disk["byte_per_s"]
    cpu_s = reads * (form["opens_per_sample"] * disk["open_s"] + form["parse_s"])
    cached = access["samples"] * form["sample_bytes"] < disk["cache_bytes"]
    return access["epochs"] * cpu_s + disk_s * (1 if cached else access["epochs"])
