# exercise: kv_cache
# told: Your function modified its input
def decode(cache, q, k, v):
    """The new key turned where it lies."""
    rows, at = torch.arange(len(q)), cache["lengths"]
    k.copy_(rotate(k, at))
    cache["k"][rows, :, at] = k
    cache["v"][rows, :, at] = v
    cache["lengths"] = at + 1
    group = q.shape[1] // k.shape[1]
    keys, values = (cache[name].repeat_interleave(group, dim=1) for name in ("k", "v"))
    scores = torch.einsum("rhd,rhtd->rht", rotate(q, at), keys) / q.shape[-1] ** 0.5
    beyond = torch.arange(keys.shape[2]) > at[:, None, None]
    weights = scores.masked_fill(beyond, -torch.inf).softmax(dim=-1)
    return torch.einsum("rht,rhtd->rhd", weights, values)
