# exercise: read_a_sampler
# told: the shares are percentages
from functools import wraps


def _in_percent(exact):
    @wraps(exact)
    def sampler_table(samples, *, rate_hz, window):
        table = exact(samples, rate_hz=rate_hz, window=window)
        for row in table["rows"].values():
            row["own"], row["total"] = 100 * row["own"], 100 * row["total"]
        return table

    return sampler_table


sampler_table = _in_percent(sampler_table)
