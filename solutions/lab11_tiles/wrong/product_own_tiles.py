# exercise: tiled_product
# told: as its tiles need
def tiled_product(a, b, bias, BM, BN):
    """relu(a @ b + bias), in tiles of BM rows and BN columns."""
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (cdiv(M, 16), cdiv(N, 16))
    tiled_product_kernel[grid](a, b, bias, c, M, N, K, BM=16, BN=16, BK=32)
    return c
