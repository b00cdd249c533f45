# exercise: read_a_sampler
# told: idle samples were left out of the number that is divided by
from functools import wraps


def _of_the_active(exact):
    @wraps(exact)
    def sampler_table(samples, *, rate_hz, window):
        table = exact(samples, rate_hz=rate_hz, window=window)
        active = sum(not sample["idle"] for sample in samples[-window:])
        for row in table["rows"].values():
            row["own"], row["total"] = row["own"] * window / active, row["total"] * window / active
        return table

    return sampler_table


sampler_table = _of_the_active(sampler_table)
