# exercise: offload_or_recompute
# told: single layers are never copied out
from itertools import product


def do_step(step, budget_bytes):
    """The best step that never copies."""
    found = []
    for plan in product(("keep", "recompute"), repeat=len(step.tape.layers)):
        trial = VirtualTape(step.tape)
        issue(trial, plan)
        if trial.replay().peak_bytes <= budget_bytes:
            found.append((trial.replay().makespan_s, plan))
    issue(step, min(found)[1])
