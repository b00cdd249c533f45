# exercise: predict_workers
# told: without workers, nothing overlaps


def predict_workers(workers, machine):
    batch_s = machine["cpu_s"] + machine["wait_s"] + machine["disk_s"]
    bounds = {
        "workers": max(1, workers) / batch_s,
        "cores": machine["cores"] / (machine["cpu_s"] + machine["step_threads"] * machine["step_s"]),
        "disk": 1 / machine["disk_s"],
        "step": 1 / machine["step_s"],
    }
    limit = min(bounds, key=bounds.get)
    return bounds[limit], limit
