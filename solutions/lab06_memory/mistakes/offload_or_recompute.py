# %% mistake="copies_everything"
# told: your step exceeds its budget, even with layers copied out
def do_step(step, budget_bytes):
    """Copies all that can be copied, whatever the copies take."""
    issue(step, ("offload",) * (len(step.tape.layers) - 1) + ("keep",))


# %% mistake="fetches_late"
# told: your code starts fetches only when their data are needed
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


# %% mistake="ignores_the_budget"
# told: your step keeps everything, but that does not fit
def do_step(step, budget_bytes):
    issue(step, ("keep",) * len(step.tape.layers))


# %% mistake="runs_all_again"
# told: your plans never copy individual layers out
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


# %% mistake="saves_what_fits"
# told: your step saves bytes, but everything fits without that
from functools import wraps


def _other(exact):
    @wraps(exact)
    def do_step(step, budget_bytes):
        room = sum(layer.activation_bytes for layer in step.tape.layers)
        return (
            issue(step, ("recompute",) * 5)
            if room <= budget_bytes
            else exact(step, budget_bytes)
        )

    return do_step


do_step = _other(do_step)
