# exercise: most_to_gain
# told: another kind of answer is asked for
from functools import wraps


def _without_gains(exact):
    @wraps(exact)
    def most_to_gain(step, machine):
        return exact(step, machine)[0]

    return most_to_gain


most_to_gain = _without_gains(most_to_gain)
