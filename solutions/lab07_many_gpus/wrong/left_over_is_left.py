# exercise: no_sync
# told: not every micro-batch is used once and in order
def train(ddp, batches, window):
    """Whole windows alone."""
    for start in range(0, len(batches) // window * window, window):
        part = batches[start : start + window]
        total = sum(batch["tokens_everywhere"] for batch in part)
        ddp.zero_grad()
        for batch in part[:-1]:
            with ddp.no_sync():
                (ddp(batch) * ddp.world_size / total).backward()
        (ddp(part[-1]) * ddp.world_size / total).backward()
        ddp.step()
