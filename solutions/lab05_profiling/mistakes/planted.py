# %% mistake="launches_by_hand"
# told: the returned losses do not come from this program
def train(job):
    losses = train_slowly(type(job)(type(job.gpu)(job.gpu.machine), job.plan))
    plan, loss = job.plan, job.gpu.empty(4, name="loss")
    read = [job.read(number, pin_memory=True) for number in range(plan.batches)]
    inside = [job.to_device(batch, non_blocking=True) for batch in read]
    for number in job.order:
        for layer in range(plan.layers):
            touched = {
                "reads": inside[number].buffer,
                "writes": loss if layer == plan.layers - 1 else (),
            }
            job.gpu.launch(f"forward {layer}", duration_s=plan.forward_s, **touched)
        for layer in reversed(range(plan.layers)):
            job.gpu.launch(f"backward {layer}", duration_s=plan.backward_s)
        job.gpu.launch(
            "update all", duration_s=0.6 * plan.update_s * len(job.parameters)
        )
    return losses


# %% mistake="losses_of_a_rehearsal"
# told: your function returned losses that were never read from the device
def train(job):
    losses = train_slowly(type(job)(type(job.gpu)(job.gpu.machine), job.plan))
    job.to_channels_last()
    inside = {}
    for number in job.order:
        if number not in inside:
            inside[number] = job.to_device(
                job.read(number, pin_memory=True), non_blocking=True
            )
        loss = job.forward(inside[number])
        job.backward(loss)
        job.update_all()
    return losses


# %% mistake="nothing_mended"
# told: your program reads and decodes the same batches more than once
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


# %% mistake="one_batch_for_all"
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


# %% mistake="rehearsed_elsewhere"
# told: your program does not contain the same training
def train(job):
    other = type(job)(type(job.gpu)(job.gpu.machine), job.plan)
    losses = train_slowly(other)
    job.forward(job.to_device(job.read(0)))
    return losses


# %% mistake="still_reads_each_loss"
# told: in your program, the host reads the loss while the device should be working
def train(job):
    job.to_channels_last()
    inside, losses = {}, []
    for number in job.order:
        if number not in inside:
            inside[number] = job.to_device(
                job.read(number, pin_memory=True), non_blocking=True
            )
        loss = job.forward(inside[number])
        losses.append(job.item(loss))
        job.backward(loss)
        job.update_all()
    return losses
