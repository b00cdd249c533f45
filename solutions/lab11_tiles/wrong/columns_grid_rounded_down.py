# exercise: column_sums
# told: The last rows are missing
def column_sums(x, BM, BN):
    """A new vector with the sum of each column of x."""
    M, N = x.shape
    y = torch.zeros(N, dtype=torch.float32, device=x.device)
    column_sums_kernel[(max(M // BM, 1), cdiv(N, BN))](x, y, M, N, BM=BM, BN=BN)
    return y
