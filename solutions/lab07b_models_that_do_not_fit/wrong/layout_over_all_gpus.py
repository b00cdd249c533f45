# exercise: layout
# told: state is sharded over the replicas alone
def layout_bytes(job, layout):
    """Bytes on the fullest GPU."""
    dp, tp, pp = layout["dp"], layout["tp"], layout["pp"]
    own = job["blocks"] / pp * job["block_parameters"] / tp
    state = {0: 16 * own, 1: 4 * own + 12 * own / dp, 3: 16 * own / dp / tp / pp}
    inputs = layout["micro"] * job["sequence"] * job["hidden"]
    blocks = job["blocks"] / pp * min(pp, layout["micro_batches"])
    kept = 34 * inputs / tp * blocks
    if layout["recompute"]:
        kept = 2 * inputs * blocks + 34 * inputs / tp
    return state[layout["zero"]] + kept
