# exercise: planted
# told: the host reads the loss while the device should be working


def train(job):
    job.to_channels_last()
    inside, losses = {}, []
    for number in job.order:
        if number not in inside:
            inside[number] = job.to_device(job.read(number, pin_memory=True), non_blocking=True)
        loss = job.forward(inside[number])
        losses.append(job.item(loss))
        job.backward(loss)
        job.update_all()
    return losses
