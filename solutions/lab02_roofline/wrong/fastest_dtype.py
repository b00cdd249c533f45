# exercise: ridge_and_bound
# told: another dtype's peak was used


def lower_bound(machine, work, *, rightly=lower_bound):  # noqa: F821
    rates = machine["peak_flop_per_s"]
    return rightly(machine, {**work, "dtype": max(rates, key=rates.get)})
