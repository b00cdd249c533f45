# %% mistake="single_activations_stay"
# told: your program keeps activations after their backward pass
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(gradient)
    held.pop()
    gradient = before
trainer.free(x)


# %% mistake="single_batch_twice"
# told: your program uses units twice in a step
# %% replace
data = trainer.load(step, first, count, dtype="uint8", pinned=True)
# %% by
data = trainer.load(step, 0, count, dtype="uint8", pinned=True)
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(gradient, held.pop())
    gradient = before
trainer.free(x)


# %% mistake="single_data_stay"
# told: your program keeps data on the device after their step
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(gradient, held.pop())
    gradient = before


# %% mistake="single_drops_the_rest"
# told: one of your updates does not include all units of its step
def train_on_one(trainer):
    """Leaves out the last micro-batch."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        for first in range(0, trainer.share - size, size):
            count = min(size, trainer.share - first)
            data = trainer.load(step, first, count, dtype="uint8", pinned=True)
            arrived = trainer.Event()
            with trainer.stream(copies):
                x = trainer.to_device(data, non_blocking=True)
                arrived.record()
            arrived.wait()
            held = [x]
            for i in range(trainer.layers):
                held.append(trainer.forward(i, held[-1], fused=True))
            gradient = trainer.loss(step, held[-1], x)
            for i in reversed(range(trainer.layers)):
                before = trainer.backward(i, held[i], gradient, fused=True)
                trainer.free(gradient, held.pop())
                gradient = before
            trainer.free(x)
        trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="single_event_too_early"
# told: one of your passes reads data before the data have arrived
# %% replace
x = trainer.to_device(data, non_blocking=True)
# %% by
arrived.record()
x = trainer.to_device(data, non_blocking=True)
# %% replace
arrived.record()
# %% by
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(gradient, held.pop())
    gradient = before
trainer.free(x)


# %% mistake="single_fp32_on_the_host"
# told: it converts data to fp32 on the host
# %% replace
data = trainer.load(step, first, count, dtype="uint8", pinned=True)
# %% by
data = trainer.load(step, first, count, pinned=True)
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(gradient, held.pop())
    gradient = before
trainer.free(x)


# %% mistake="single_gradients_stay"
# told: your program keeps gradients of outputs after their backward pass
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(held.pop())
    gradient = before
trainer.free(x)


# %% mistake="single_layer_not_updated"
# told: your updates leave out some layers
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(gradient, held.pop())
    gradient = before
trainer.free(x)
# %% replace
trainer.update(fused=True)
# %% by
trainer.update(1, fused=True)


# %% mistake="single_loads_next_first"
# told: the host loads the next units before it issues the passes
def train_on_one(trainer):
    """Two buffers: loads the next units, then issues the passes over these."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    cuts = [
        (step, first, min(size, trainer.share - first))
        for step in range(trainer.steps)
        for first in range(0, trainer.share, size)
    ]

    def loaded(step, first, count):
        data = trainer.load(step, first, count, dtype="uint8", pinned=True)
        arrived = trainer.Event()
        with trainer.stream(copies):
            x = trainer.to_device(data, non_blocking=True)
            arrived.record()
        return x, arrived

    ahead = loaded(*cuts[0])
    for number, (step, first, count) in enumerate(cuts):
        x, arrived = ahead
        if number + 1 < len(cuts):
            ahead = loaded(*cuts[number + 1])
        arrived.wait()
        held = [x]
        for i in range(trainer.layers):
            held.append(trainer.forward(i, held[-1], fused=True))
        gradient = trainer.loss(step, held[-1], x)
        for i in reversed(range(trainer.layers)):
            before = trainer.backward(i, held[i], gradient, fused=True)
            trainer.free(gradient, held.pop())
            gradient = before
        trainer.free(x)
        if first + count == trainer.share:
            trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="single_loss_of_step_0"
# told: your program adds a loss to the loss of a different step
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(0, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(gradient, held.pop())
    gradient = before
trainer.free(x)


# %% mistake="single_never_reads"
# told: your program never reads the loss of a step
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(gradient, held.pop())
    gradient = before
trainer.free(x)
# %% replace
trainer.read_losses()
# %% by
trainer.read_loss(trainer.steps - 1)


# %% mistake="single_next_steps_data"
# told: units pass through the weights of a different step
# %% replace
data = trainer.load(step, first, count, dtype="uint8", pinned=True)
# %% by
data = trainer.load(
    (step + 1) % trainer.steps, first, count, dtype="uint8", pinned=True
)
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(gradient, held.pop())
    gradient = before
trainer.free(x)


# %% mistake="single_no_event"
# told: no stream waits for the copy of the data
# %% replace
arrived.wait()
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(gradient, held.pop())
    gradient = before
trainer.free(x)


# %% mistake="single_no_memory_limit"
# told: micro-batches are too large for the memory
# %% replace
job = trainer.job
# %% by
# %% replace
size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
# %% by
size = max(units)
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(gradient, held.pop())
    gradient = before
trainer.free(x)


# %% mistake="single_one_stream"
# told: copies wait for kernels
def train_on_one(trainer):
    """Copies on the stream of the kernels, in halves of what fits."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    size = max(size // 2, 1)
    for step in range(trainer.steps):
        for first in range(0, trainer.share, size):
            count = min(size, trainer.share - first)
            data = trainer.load(step, first, count, dtype="uint8", pinned=True)
            x = trainer.to_device(data, non_blocking=True)
            held = [x]
            for i in range(trainer.layers):
                held.append(trainer.forward(i, held[-1], fused=True))
            gradient = trainer.loss(step, held[-1], x)
            for i in reversed(range(trainer.layers)):
                before = trainer.backward(i, held[i], gradient, fused=True)
                trainer.free(gradient, held.pop())
                gradient = before
            trainer.free(x)
        trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="single_optimizer_kernels"
# told: three separate kernels update each layer
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(gradient, held.pop())
    gradient = before
trainer.free(x)
# %% replace
trainer.update(fused=True)
# %% by
trainer.update()


# %% mistake="single_reads_each"
# told: the host reads a loss in every step
# %% replace
count = min(size, trainer.share - first)
# %% by
count = min(size, trainer.share - first)
trainer.read_loss(step)
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(gradient, held.pop())
    gradient = before
trainer.free(x)


# %% mistake="single_reads_too_early"
# told: your program reads a loss before all units have been added to it
def train_on_one(trainer):
    """Reads the loss of the first micro-batch for that of the step."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        for first in range(0, trainer.share, size):
            count = min(size, trainer.share - first)
            data = trainer.load(step, first, count, dtype="uint8", pinned=True)
            arrived = trainer.Event()
            with trainer.stream(copies):
                x = trainer.to_device(data, non_blocking=True)
                arrived.record()
            arrived.wait()
            held = [x]
            for i in range(trainer.layers):
                held.append(trainer.forward(i, held[-1], fused=True))
            gradient = trainer.loss(step, held[-1], x)
            if not first:
                trainer.read_loss(step)
            for i in reversed(range(trainer.layers)):
                before = trainer.backward(i, held[i], gradient, fused=True)
                trainer.free(gradient, held.pop())
                gradient = before
            trainer.free(x)
        trainer.update(fused=True)


# %% mistake="single_synchronizes"
# told: the host waits for the device in every step
# %% replace
count = min(size, trainer.share - first)
# %% by
count = min(size, trainer.share - first)
trainer.synchronize()
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(gradient, held.pop())
    gradient = before
trainer.free(x)


# %% mistake="single_unfused_backward"
# told: each backward pass runs as three kernels
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient)
    trainer.free(gradient, held.pop())
    gradient = before
trainer.free(x)


# %% mistake="single_unfused_forward"
# told: each forward pass runs as three kernels
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1]))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(gradient, held.pop())
    gradient = before
trainer.free(x)


# %% mistake="single_unit_batches"
# told: the micro-batches are smaller than necessary
# %% replace
job = trainer.job
# %% by
# %% replace
size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
# %% by
size = min(units)
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(gradient, held.pop())
    gradient = before
trainer.free(x)


# %% mistake="single_updates_each_batch"
# told: one of your updates comes before all units of its step have been processed
def train_on_one(trainer):
    """An update after every micro-batch."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        for first in range(0, trainer.share, size):
            count = min(size, trainer.share - first)
            data = trainer.load(step, first, count, dtype="uint8", pinned=True)
            arrived = trainer.Event()
            with trainer.stream(copies):
                x = trainer.to_device(data, non_blocking=True)
                arrived.record()
            arrived.wait()
            held = [x]
            for i in range(trainer.layers):
                held.append(trainer.forward(i, held[-1], fused=True))
            gradient = trainer.loss(step, held[-1], x)
            for i in reversed(range(trainer.layers)):
                before = trainer.backward(i, held[i], gradient, fused=True)
                trainer.free(gradient, held.pop())
                gradient = before
            trainer.free(x)
            trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="single_updates_in_the_end"
# told: your program has steps without an update
def train_on_one(trainer):
    """One update at the end."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        for first in range(0, trainer.share, size):
            count = min(size, trainer.share - first)
            data = trainer.load(step, first, count, dtype="uint8", pinned=True)
            arrived = trainer.Event()
            with trainer.stream(copies):
                x = trainer.to_device(data, non_blocking=True)
                arrived.record()
            arrived.wait()
            held = [x]
            for i in range(trainer.layers):
                held.append(trainer.forward(i, held[-1], fused=True))
            gradient = trainer.loss(step, held[-1], x)
            for i in reversed(range(trainer.layers)):
                before = trainer.backward(i, held[i], gradient, fused=True)
                trainer.free(gradient, held.pop())
                gradient = before
            trainer.free(x)
    trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="single_waits_for_copies"
# told: copies from pageable memory
# %% replace
data = trainer.load(step, first, count, dtype="uint8", pinned=True)
# %% by
data = trainer.load(step, first, count, dtype="uint8")
# %% replace
passes(trainer, step, x)
# %% by
held = [x]
for i in range(trainer.layers):
    held.append(trainer.forward(i, held[-1], fused=True))
gradient = trainer.loss(step, held[-1], x)
for i in reversed(range(trainer.layers)):
    before = trainer.backward(i, held[i], gradient, fused=True)
    trainer.free(gradient, held.pop())
    gradient = before
trainer.free(x)
