# exercise: planted
# told: the loss curve changed at step


def train(job):
    job.to_channels_last()
    batch = job.to_device(job.read(0, pin_memory=True), non_blocking=True)
    losses = []
    for _ in job.order:
        losses.append(job.forward(batch))
        job.backward(losses[-1])
        job.update_all()
    return [job.item(loss) for loss in losses]
