# exercise: attention
# told: Keys behind the end count
def attention(q, k, v, keys, BM, BN):
    """softmax(q @ k.T / sqrt(d)) @ v over the first `keys` keys."""
    queries, d = q.shape
    keys = k.shape[0]
    o = torch.empty_like(q)
    grid = (cdiv(queries, BM),)
    attention_kernel[grid](q, k, v, o, queries, keys, d**-0.5, D=d, BM=BM, BN=BN)
    return o
