# %% mistake="a_step_costs_no_cores"
# told: your code counts a step on the cores as free for the loader
def predict_workers(workers, machine):
    batch_s = machine["cpu_s"] + machine["wait_s"] + machine["disk_s"]
    if workers == 0:
        return 1 / (batch_s + machine["step_s"]), "workers"
    bounds = {
        "workers": workers / batch_s,
        "cores": machine["cores"] / machine["cpu_s"],
    }
    bounds |= {"disk": 1 / machine["disk_s"], "step": 1 / machine["step_s"]}
    limit = min(bounds, key=bounds.get)
    return bounds[limit], limit


# %% mistake="no_workers_overlap"
# told: your code overlaps loading and stepping, but there are no workers
def predict_workers(workers, machine):
    batch_s = machine["cpu_s"] + machine["wait_s"] + machine["disk_s"]
    bounds = {
        "workers": max(1, workers) / batch_s,
        "cores": machine["cores"]
        / (machine["cpu_s"] + machine["step_threads"] * machine["step_s"]),
        "disk": 1 / machine["disk_s"],
        "step": 1 / machine["step_s"],
    }
    limit = min(bounds, key=bounds.get)
    return bounds[limit], limit


# %% mistake="workers_without_end"
# told: your code leaves out the number of cores
def predict_workers(workers, machine):
    batch_s = machine["cpu_s"] + machine["wait_s"] + machine["disk_s"]
    if workers == 0:
        return 1 / (batch_s + machine["step_s"]), "workers"
    bounds = {
        "workers": workers / batch_s,
        "disk": 1 / machine["disk_s"],
        "step": 1 / machine["step_s"],
    }
    limit = min(bounds, key=bounds.get)
    return bounds[limit], limit


# %% mistake="step_divided_by_its_threads"
# told: your code divides the step's time by its threads
def predict_workers(workers, machine):
    batch_s = machine["cpu_s"] + machine["wait_s"] + machine["disk_s"]
    if workers == 0:
        return 1 / (batch_s + machine["step_s"]), "workers"
    bounds = {
        "workers": workers / batch_s,
        "cores": machine["cores"]
        / (machine["cpu_s"] + machine["step_threads"] * machine["step_s"]),
        "disk": 1 / machine["disk_s"],
        "step": max(1, machine["step_threads"]) / machine["step_s"],
    }
    limit = min(bounds, key=bounds.get)
    return bounds[limit], limit
