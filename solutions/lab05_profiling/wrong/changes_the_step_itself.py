# exercise: most_to_gain
# told: the step that was given is changed


def without(step, cause):
    if cause == "launch":
        return captured(step)
    for operation in step:
        if cause == "kernels" and operation["op"] == "launch":
            operation["duration_s"] /= 2
        if cause == "copy" and operation["op"] == "copy":
            operation["pinned"] = True
    gone = {"synchronisation": ("item", "sync"), "data": ("load",)}.get(cause, ())
    return [operation for operation in step if operation["op"] not in gone]
