# exercise: kv_cache
# told: heads are matched with the wrong keys and values
def decode(cache, q, k, v):
    """Every other head."""
    rows, at = torch.arange(len(q)), cache["lengths"]
    cache["k"][rows, :, at] = rotate(k, at)
    cache["v"][rows, :, at] = v
    cache["lengths"] = at + 1
    group = q.shape[1] // k.shape[1]
    keys, values = (cache[name].repeat(1, group, 1, 1) for name in ("k", "v"))
    scores = torch.einsum("rhd,rhtd->rht", rotate(q, at), keys) / q.shape[-1] ** 0.5
    beyond = torch.arange(keys.shape[2]) > at[:, None, None]
    weights = scores.masked_fill(beyond, -torch.inf).softmax(dim=-1)
    return torch.einsum("rht,rhtd->rhd", weights, values)
