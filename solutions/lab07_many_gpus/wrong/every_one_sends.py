# exercise: no_sync
# told: micro-batches send that need not
def train(ddp, batches, window):
    """no_sync is not used."""
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        total = sum(batch["tokens_everywhere"] for batch in part)
        ddp.zero_grad()
        for batch in part[:-1]:
            (ddp(batch) * ddp.world_size / total).backward()
        (ddp(part[-1]) * ddp.world_size / total).backward()
        ddp.step()
