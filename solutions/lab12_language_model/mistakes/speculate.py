# %% mistake="drafts_all_of_p"
# told: The residual is p itself
# %% replace
above = np.maximum(p - q, 0)
return above / above.sum()
# %% by
return p


# %% mistake="drafts_argmax"
# told: Only the large model's likeliest token is accepted
# %% replace
return min(1.0, p[token] / q[token])
# %% by
return float(p.argmax() == token)


# %% mistake="drafts_at_least_one"
# told: A length of 0 is never taken
# %% replace
return max(range(most + 1), key=speed)
# %% by
return max(range(1, most + 1), key=speed)


# %% mistake="drafts_below_most"
# told: Another draft length is best
# %% replace
return max(range(most + 1), key=speed)
# %% by
return max(range(most), key=speed)


# %% mistake="drafts_by_the_large"
# told: The probability of acceptance is p
# %% replace
return min(1.0, p[token] / q[token])
# %% by
return p[token]


# %% mistake="drafts_cost_nothing"
# told: Drafting costs nothing
# %% replace
return tokens_a_pass / (1 + cost * length)
# %% by
return tokens_a_pass


# %% mistake="drafts_differences"
# told: The residual contains more than the excess of p over q
# %% replace
above = np.maximum(p - q, 0)
# %% by
above = np.abs(p - q)


# %% mistake="drafts_exchanged"
# told: p and q are exchanged
# %% replace
return min(1.0, p[token] / q[token])
# %% by
return min(1.0, q[token] / p[token])


# %% mistake="drafts_from_large"
# told: After a refused token, one is drawn from the large
# %% replace
accepted, last = drafted[:i], residual(large[i], small[i])
# %% by
accepted, last = drafted[:i], large[i]


# %% mistake="drafts_goes_on"
# told: Tokens after a refused one are kept
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
# told: A token is accepted only where
# %% replace
return min(1.0, p[token] / q[token])
# %% by
return float(p[token] >= q[token])


# %% mistake="drafts_no_bonus"
# told: The bonus token is missing
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
# told: A probability is above 1
# %% replace
return min(1.0, p[token] / q[token])
# %% by
return p[token] / q[token]


# %% mistake="drafts_not_divided"
# told: The residual does not sum to 1
# %% replace
return above / above.sum()
# %% by
return above


# %% mistake="drafts_nothing_after_refusal"
# told: Nothing is drawn after a refused token
# %% replace
accepted, last = drafted[:i], residual(large[i], small[i])
break
# %% by
return drafted[:i]


# %% mistake="drafts_one_fewer"
# told: The large model's own token is left out
# %% replace
tokens_a_pass = (1 - acceptance ** (length + 1)) / (1 - acceptance)
# %% by
tokens_a_pass = (1 - acceptance**length) / (1 - acceptance)


# %% mistake="drafts_equal_is_accepted"
# told: a uniform that equals the probability accepts the token
# why: it was refused only where the uniform is above
# next: a drafted token is accepted if its uniform is below the probability
# %% replace
if uniforms[i] >= accept_probability(large[i], small[i], token):
    accepted, last = drafted[:i], residual(large[i], small[i])
    break
# %% by
if uniforms[i] > accept_probability(large[i], small[i], token):
    accepted, last = drafted[:i], residual(large[i], small[i])
    break


# %% mistake="drafts_sum_reaches_u"
# told: a token of probability 0 is drawn
# why: if the random number is 0, the first probability alone already reaches it
# next: take the first token at which the sum is above the number
# %% replace
return [*accepted, int((np.cumsum(last) > uniforms[len(drafted)]).argmax())]
# %% by
return [*accepted, int((np.cumsum(last) >= uniforms[len(drafted)]).argmax())]


# %% mistake="drafts_longer_of_equal"
# told: of two lengths that are equally fast, the longer one is taken
# why: with a cost that equals the acceptance, one drafted token gains nothing
# next: take the shorter one
# %% replace
return max(range(most + 1), key=speed)
# %% by
return max(reversed(range(most + 1)), key=speed)
