# exercise: offload_or_recompute
# told: copies that are not over yet still hold their memory
def do_step(step, budget_bytes):
    """Copies all that can be copied, whatever the copies take."""
    issue(step, ("offload",) * (len(step.tape.layers) - 1) + ("keep",))
