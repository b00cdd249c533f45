# exercise: offload_or_recompute
# told: copies come back when they are needed, not before
from functools import wraps


def _late(exact):
    def issued_late(step, many):
        last = len(step.tape.layers) - 1
        for i in range(last + 1):
            step.forward(i, keep=True)
            if 0 < i <= many:
                step.offload(i - 1)
        for i in reversed(range(last + 1)):
            if 0 < i <= many:
                step.fetch(i - 1)
            step.backward(i)

    @wraps(exact)
    def do_step(step, budget_bytes):
        """Copies as many layers as fit, each fetched right before it is read."""
        if sum(layer.activation_bytes for layer in step.tape.layers) <= budget_bytes:
            return exact(step, budget_bytes)
        for many in (4, 3, 2, 1):
            trial = VirtualTape(step.tape)
            issued_late(trial, many)
            if trial.replay().peak_bytes <= budget_bytes:
                return issued_late(step, many)
        return exact(step, budget_bytes)

    return do_step


do_step = _late(do_step)
