# exercise: speculate
# told: Only the large model's likeliest token is accepted
def accept_probability(p, q, token):
    """The probability that a drafted token is accepted."""
    return float(p.argmax() == token)


def residual(p, q):
    """The probabilities of the token that is drawn after a refusal."""
    above = np.maximum(p - q, 0)
    return above / above.sum()


def next_tokens(drafted, large, small, uniforms):
    """The tokens that one pass of the large model gives."""
    last = large[len(drafted)]
    accepted = list(drafted)
    for i, token in enumerate(drafted):
        if uniforms[i] >= accept_probability(large[i], small[i], token):
            accepted, last = drafted[:i], residual(large[i], small[i])
            break
    return [*accepted, int((np.cumsum(last) > uniforms[len(drafted)]).argmax())]


def best_length(acceptance, cost, most):
    """The number of drafted tokens, 0 to `most`, that writes fastest."""

    def speed(length):
        tokens_a_pass = (1 - acceptance ** (length + 1)) / (1 - acceptance)
        return tokens_a_pass / (1 + cost * length)

    return max(range(most + 1), key=speed)
