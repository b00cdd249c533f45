# exercise: planted
# told: batches are read and decoded more often than there are batches


def train(job):
    losses = []
    for number in job.order:
        loss = job.forward(job.to_device(job.read(number)))
        losses.append(job.item(loss))
        job.backward(loss)
        for name in job.parameters:
            job.update(name)
        job.empty_cache()
    return losses
