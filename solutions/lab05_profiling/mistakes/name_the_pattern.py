# %% mistake="a_blocking_copy_is_a_wait"
# told: your code charges a copy that blocked the host to synchronisation
_right_charges = charges


def charges(spans):
    return _right_charges(
        [{**span, "name": "item"} if span["kind"] == "wait" else span for span in spans]
    )


# %% mistake="always_gpu_bound"
# told: this step is not bound by 'gpu'
def name_the_pattern(spans):
    return "gpu"


# %% mistake="charges_the_hosts_line"
# told: in your answer, each pattern has the right seconds, but at the wrong lines
_right_charges = charges


def charges(spans):
    charged = _right_charges(spans)
    for began_s, ended_s, wait in gaps(spans):
        for span in spans if wait else ():
            if span["kind"] in ("python", "call"):
                pattern = "copy" if wait["name"] == "copy" else "synchronisation"
                piece_s = overlap_s(span, [[began_s, ended_s]])
                charged[pattern, wait["line"]] -= piece_s
                charged[pattern, span["line"]] = (
                    charged.get((pattern, span["line"]), 0.0) + piece_s
                )
    return charged


# %% mistake="copies_behind_kernels"
# told: your code charges a copy while a kernel runs
_right_charges = charges


def charges(spans):
    charged = _right_charges(spans)
    kernels = joined([span for span in spans if span["kind"] == "kernel"])
    for span in spans:
        if span["kind"] == "copy":
            charged["copy", span["line"]] += overlap_s(span, kernels)
    return charged


# %% mistake="largest_single_charge"
# told: your answer is the pattern of the largest single charge
def name_the_pattern(spans):
    charged = charges(spans)
    return max(charged, key=charged.get)[0]


# %% mistake="most_common_wait"
# told: this step is not bound by
def name_the_pattern(spans):
    waits = any(span["kind"] == "wait" and span["name"] != "copy" for span in spans)
    return "synchronisation" if waits else "data"


# %% mistake="spans_added_up"
# told: this step is not bound by
def name_the_pattern(spans):
    sums = {"gpu": 0.0, "launch": 0.0, "data": 0.0, "copy": 0.0}
    names = {
        "kernel": "gpu",
        "call": "launch",
        "python": "launch",
        "load": "data",
        "copy": "copy",
    }
    for span in spans:
        if span["kind"] in names:
            sums[names[span["kind"]]] += span["end_s"] - span["start_s"]
    return "data" if sums["data"] > 0 else max(sums, key=sums.get)
