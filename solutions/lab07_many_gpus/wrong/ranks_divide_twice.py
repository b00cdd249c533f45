# exercise: no_sync
# told: the mean that DDP takes over the ranks is not undone
def train(ddp, batches, window):
    """No factor P."""
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        total = sum(batch["tokens_everywhere"] for batch in part)
        ddp.zero_grad()
        for batch in part[:-1]:
            with ddp.no_sync():
                (ddp(batch) / total).backward()
        (ddp(part[-1]) / total).backward()
        ddp.step()
