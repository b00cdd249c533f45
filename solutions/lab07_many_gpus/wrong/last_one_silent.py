# exercise: no_sync
# told: ranks step with gradients of their own
def train(ddp, batches, window):
    """The last one is inside as well."""
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        total = sum(batch["tokens_everywhere"] for batch in part)
        ddp.zero_grad()
        for batch in part:
            with ddp.no_sync():
                (ddp(batch) * ddp.world_size / total).backward()
        ddp.step()
