# exercise: kv_cache
# told: cells that hold no token of the row are attended to
def decode(cache, q, k, v):
    """One cell too many."""
    rows, at = torch.arange(len(q)), cache["lengths"]
    cache["k"][rows, :, at] = rotate(k, at)
    cache["v"][rows, :, at] = v
    cache["lengths"] = at + 1
    group = q.shape[1] // k.shape[1]
    keys, values = (cache[name].repeat_interleave(group, dim=1) for name in ("k", "v"))
    scores = torch.einsum("rhd,rhtd->rht", rotate(q, at), keys) / q.shape[-1] ** 0.5
    beyond = torch.arange(keys.shape[2]) > at[:, None, None] + 1
    weights = scores.masked_fill(beyond, -torch.inf).softmax(dim=-1)
    return torch.einsum("rht,rhtd->rhd", weights, values)
