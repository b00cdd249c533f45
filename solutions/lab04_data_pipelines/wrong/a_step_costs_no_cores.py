# exercise: predict_workers
# told: a step on cores was taken to cost the loader nothing


def predict_workers(workers, machine):
    batch_s = machine["cpu_s"] + machine["wait_s"] + machine["disk_s"]
    if workers == 0:
        return 1 / (batch_s + machine["step_s"]), "workers"
    bounds = {"workers": workers / batch_s, "cores": machine["cores"] / machine["cpu_s"]}
    bounds |= {"disk": 1 / machine["disk_s"], "step": 1 / machine["step_s"]}
    limit = min(bounds, key=bounds.get)
    return bounds[limit], limit
