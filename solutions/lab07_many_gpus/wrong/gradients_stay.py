# exercise: no_sync
# told: gradients of another window are still there
def train(ddp, batches, window):
    """Nothing is cleared."""
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        total = sum(batch["tokens_everywhere"] for batch in part)
        for batch in part[:-1]:
            with ddp.no_sync():
                (ddp(batch) * ddp.world_size / total).backward()
        (ddp(part[-1]) * ddp.world_size / total).backward()
        ddp.step()
