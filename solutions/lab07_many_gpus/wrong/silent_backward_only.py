# exercise: no_sync
# told: DDP decides in the forward pass whether it sends
def train(ddp, batches, window):
    """Only the backward pass is inside."""
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        total = sum(batch["tokens_everywhere"] for batch in part)
        ddp.zero_grad()
        for batch in part[:-1]:
            loss = ddp(batch) * ddp.world_size / total
            with ddp.no_sync():
                loss.backward()
        (ddp(part[-1]) * ddp.world_size / total).backward()
        ddp.step()
