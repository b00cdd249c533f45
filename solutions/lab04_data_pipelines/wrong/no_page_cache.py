# exercise: storage_format
# told: the page cache was left out


def format_cost_s(form, access, disk):
    scattered = access["order"] == "random"
    reads = access["reads"] if scattered else access["samples"]
    nbytes = form["sample_bytes"] * (access["column_share"] if form["columnar"] else 1)
    nbytes = max(nbytes, form["unit_bytes"]) if scattered else nbytes
    seeks = reads if scattered else 1
    cpu_s = reads * (form["opens_per_sample"] * disk["open_s"] + form["parse_s"])
    return access["epochs"] * (cpu_s + seeks * disk["seek_s"] + reads * nbytes / disk["byte_per_s"])
