# exercise: no_sync
# told: each rank divides by its own tokens
def train(ddp, batches, window):
    """Tokens of this rank."""
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        total = sum(batch["tokens"] for batch in part)
        ddp.zero_grad()
        for batch in part[:-1]:
            with ddp.no_sync():
                (ddp(batch) * ddp.world_size / total).backward()
        (ddp(part[-1]) * ddp.world_size / total).backward()
        ddp.step()
