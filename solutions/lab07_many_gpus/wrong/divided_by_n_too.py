# exercise: no_sync
# told: gradients are divided by something else
def train(ddp, batches, window):
    """By the window as well."""
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        total = sum(batch["tokens_everywhere"] for batch in part)
        ddp.zero_grad()
        for batch in part[:-1]:
            with ddp.no_sync():
                (ddp(batch) * ddp.world_size / total / len(part)).backward()
        (ddp(part[-1]) * ddp.world_size / total / len(part)).backward()
        ddp.step()
