# exercise: column_sums
# told: The sums begin with undefined memory
def column_sums(x, BM, BN):
    """A new vector with the sum of each column of x."""
    M, N = x.shape
    y = torch.empty(N, dtype=torch.float32, device=x.device)
    column_sums_kernel[(cdiv(M, BM), cdiv(N, BN))](x, y, M, N, BM=BM, BN=BN)
    return y
