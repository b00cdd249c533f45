# exercise: fit_a_link
# told: the rate is another one
def fit(sizes, took_s):
    """From the first message and one in the middle."""
    rate = sizes[10] / took_s[10]
    return took_s[0], rate, took_s[0] * rate
