# exercise: offload_or_recompute
# told: everything is kept, and it does not fit
def do_step(step, budget_bytes):
    issue(step, ("keep",) * len(step.tape.layers))
