# %% mistake="drafts_all_of_p"
# told: Your residual is p itself
# %% replace
above = np.maximum(p - q, 0)
return above / above.sum()
# %% by
return p


# %% mistake="drafts_argmax"
# told: Your function accepts only the large model's most likely token
# %% replace
return min(1.0, p[token] / q[token])
# %% by
return float(p.argmax() == token)


# %% mistake="drafts_at_least_one"
# told: `best_length` never returns 0.
# %% replace
return max(range(most + 1), key=speed)
# %% by
return max(range(1, most + 1), key=speed)


# %% mistake="drafts_below_most"
# told: `best_length` does not return the fastest length.
# %% replace
return max(range(most + 1), key=speed)
# %% by
return max(range(most), key=speed)


# %% mistake="drafts_by_the_large"
# told: Your function returns p as the probability of acceptance
# %% replace
return min(1.0, p[token] / q[token])
# %% by
return p[token]


# %% mistake="drafts_cost_nothing"
# told: `best_length` leaves out the cost of drafting.
# %% replace
return tokens_a_pass / (1 + cost * length)
# %% by
return tokens_a_pass


# %% mistake="drafts_differences"
# told: Your residual contains more than the excess of p over q
# %% replace
above = np.maximum(p - q, 0)
# %% by
above = np.abs(p - q)


# %% mistake="drafts_exchanged"
# told: Your function exchanges p and q
# %% replace
return min(1.0, p[token] / q[token])
# %% by
return min(1.0, q[token] / p[token])


# %% mistake="drafts_from_large"
# told: After a refused token, your function draws from the large
# %% replace
accepted, last = drafted[:i], residual(large[i], small[i])
# %% by
accepted, last = drafted[:i], large[i]


# %% mistake="drafts_goes_on"
# told: Your function keeps tokens after a refused one
# %% replace
accepted = list(drafted)
for i, token in enumerate(drafted):
    if uniforms[i] >= accept_probability(large[i], small[i], token):
        accepted, last = drafted[:i], residual(large[i], small[i])
        break
return [*accepted, int((np.cumsum(last) > uniforms[len(drafted)]).argmax())]
# %% by
accepted = []
draw = uniforms[len(drafted)]
for i, token in enumerate(drafted):
    if uniforms[i] >= accept_probability(large[i], small[i], token):
        token = int((np.cumsum(residual(large[i], small[i])) > draw).argmax())
    accepted.append(token)
return [*accepted, int((np.cumsum(last) > draw).argmax())]


# %% mistake="drafts_if_likelier"
# told: Your function accepts a token only if
# %% replace
return min(1.0, p[token] / q[token])
# %% by
return float(p[token] >= q[token])


# %% mistake="drafts_no_bonus"
# told: Your function leaves out the additional token
# %% replace
for i, token in enumerate(drafted):
    if uniforms[i] >= accept_probability(large[i], small[i], token):
        accepted, last = drafted[:i], residual(large[i], small[i])
        break
# %% by
for i, token in enumerate(drafted):
    if uniforms[i] >= accept_probability(large[i], small[i], token):
        accepted, last = drafted[:i], residual(large[i], small[i])
        break
if len(accepted) == len(drafted):
    return accepted


# %% mistake="drafts_not_capped"
# told: Your function returns a probability above 1
# %% replace
return min(1.0, p[token] / q[token])
# %% by
return p[token] / q[token]


# %% mistake="drafts_not_divided"
# told: Your residual does not sum to 1
# %% replace
return above / above.sum()
# %% by
return above


# %% mistake="drafts_nothing_after_refusal"
# told: Your function draws no token after a refused one
# %% replace
accepted, last = drafted[:i], residual(large[i], small[i])
break
# %% by
return drafted[:i]


# %% mistake="drafts_one_fewer"
# told: `best_length` leaves out the large model's own token.
# %% replace
tokens_a_pass = (1 - acceptance ** (length + 1)) / (1 - acceptance)
# %% by
tokens_a_pass = (1 - acceptance**length) / (1 - acceptance)


# %% mistake="drafts_equal_is_accepted"
# told: Your function accepts a token whose uniform number equals the probability.
# why: your function refuses a token only if its uniform number is above the probability
# next: accept a drafted token only if its uniform number is below the probability
# %% replace
if uniforms[i] >= accept_probability(large[i], small[i], token):
    accepted, last = drafted[:i], residual(large[i], small[i])
    break
# %% by
if uniforms[i] > accept_probability(large[i], small[i], token):
    accepted, last = drafted[:i], residual(large[i], small[i])
    break


# %% mistake="drafts_sum_reaches_u"
# told: Your function can draw a token of probability 0.
# why: for the random number 0, your function returns the first token even if its probability is 0
# next: return the first token at which the sum is above the random number
# %% replace
return [*accepted, int((np.cumsum(last) > uniforms[len(drafted)]).argmax())]
# %% by
return [*accepted, int((np.cumsum(last) >= uniforms[len(drafted)]).argmax())]


# %% mistake="drafts_longer_of_equal"
# told: Of two equally fast lengths, `best_length` returns the longer one.
# why: if cost and acceptance are equal, the lengths 0 and 1 are equally fast
# next: return the shorter length
# %% replace
return max(range(most + 1), key=speed)
# %% by
return max(reversed(range(most + 1)), key=speed)
