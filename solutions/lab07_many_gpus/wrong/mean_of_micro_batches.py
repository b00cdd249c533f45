# exercise: no_sync
# told: tokens of short micro-batches weigh more
def train(ddp, batches, window):
    """Each micro-batch by its own tokens."""
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        ddp.zero_grad()
        for batch in part[:-1]:
            with ddp.no_sync():
                (ddp(batch) * ddp.world_size / batch["tokens_everywhere"] / len(part)).backward()
        (ddp(part[-1]) * ddp.world_size / part[-1]["tokens_everywhere"] / len(part)).backward()
        ddp.step()
