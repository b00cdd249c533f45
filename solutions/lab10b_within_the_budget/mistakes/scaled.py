# %% mistake="scaled_blocking_sums"
# told: passes wait for the sum of gradients
def train_on_many(trainer):
    """Every sum holds the next backward pass up."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        works = []
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
                if first + count == trainer.share:
                    trainer.all_reduce(i, i + 1)
            trainer.free(x)
        for work in works:
            work.wait()
        trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="scaled_does_not_wait"
# told: one of your updates does not wait for the sum of its gradients
def train_on_many(trainer):
    """Starts sums, and updates at once."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        works = []
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
                if first + count == trainer.share:
                    works.append(trainer.all_reduce(i, i + 1, async_op=True))
            trainer.free(x)
        trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="scaled_drops_the_rest"
# told: one of your updates does not include all units of its step
def train_on_many(trainer):
    """Steps over a unit between micro-batches."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        works = []
        for first in range(0, trainer.share, size + 1):
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
                if first + size + 1 >= trainer.share:
                    works.append(trainer.all_reduce(i, i + 1, async_op=True))
            trainer.free(x)
        for work in works:
            work.wait()
        trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="scaled_last_layer_forgotten"
# told: a GPU updates with only its own gradients
def train_on_many(trainer):
    """The last layer is never summed."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        works = []
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
                if first + count == trainer.share and i < trainer.layers - 1:
                    works.append(trainer.all_reduce(i, i + 1, async_op=True))
            trainer.free(x)
        for work in works:
            work.wait()
        trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="scaled_never_sums"
# told: your program never sums gradients over the GPUs
def train_on_many(trainer):
    """Every GPU for itself."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        works = []
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
        for work in works:
            work.wait()
        trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="scaled_no_event"
# told: no stream waits for the copy of the data
def train_on_many(trainer):
    """Nobody waits for the copies."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        works = []
        for first in range(0, trainer.share, size):
            count = min(size, trainer.share - first)
            data = trainer.load(step, first, count, dtype="uint8", pinned=True)
            arrived = trainer.Event()
            with trainer.stream(copies):
                x = trainer.to_device(data, non_blocking=True)
                arrived.record()
            held = [x]
            for i in range(trainer.layers):
                held.append(trainer.forward(i, held[-1], fused=True))
            gradient = trainer.loss(step, held[-1], x)
            for i in reversed(range(trainer.layers)):
                before = trainer.backward(i, held[i], gradient, fused=True)
                trainer.free(gradient, held.pop())
                gradient = before
                if first + count == trainer.share:
                    works.append(trainer.all_reduce(i, i + 1, async_op=True))
            trainer.free(x)
        for work in works:
            work.wait()
        trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="scaled_one_bucket"
# told: a single sum of all gradients starts when no computation is left to hide it
def train_on_many(trainer):
    """One sum of everything after all passes."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        works = []
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
        works.append(trainer.all_reduce(async_op=True))
        for work in works:
            work.wait()
        trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="scaled_sums_before_backward"
# told: your program sums gradients while a backward pass adds to them
def train_on_many(trainer):
    """Starts a layer's sum before its backward pass."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        works = []
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
                if first + count == trainer.share:
                    works.append(trainer.all_reduce(i, i + 1, async_op=True))
                before = trainer.backward(i, held[i], gradient, fused=True)
                trainer.free(gradient, held.pop())
                gradient = before
            trainer.free(x)
        for work in works:
            work.wait()
        trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="scaled_sums_each_batch"
# told: your program sums gradients over the GPUs more than once
def train_on_many(trainer):
    """Sums after the first micro-batch too."""
    range(1, trainer.share + 1)
    size = 1
    copies = trainer.Stream()
    for step in range(trainer.steps):
        works = []
        for first in range(0, trainer.share, size):
            count = min(size, trainer.share - first)
            data = trainer.load(step, first, count, dtype="uint8", pinned=True)
            arrived = trainer.Event()
            with trainer.stream(copies):
                x = trainer.to_device(data, non_blocking=True)
                arrived.record()
            arrived.wait()
            for work in works:
                work.wait()
            held = [x]
            for i in range(trainer.layers):
                held.append(trainer.forward(i, held[-1], fused=True))
            gradient = trainer.loss(step, held[-1], x)
            for i in reversed(range(trainer.layers)):
                before = trainer.backward(i, held[i], gradient, fused=True)
                trainer.free(gradient, held.pop())
                gradient = before
                if first + count == trainer.share or not first:
                    works.append(trainer.all_reduce(i, i + 1, async_op=True))
            trainer.free(x)
        for work in works:
            work.wait()
        trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="scaled_unit_batches"
# told: the micro-batches are smaller than necessary
def train_on_many(trainer):
    """One unit at a time."""
    units = range(1, trainer.share + 1)
    size = min(units)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        works = []
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
                if first + count == trainer.share:
                    works.append(trainer.all_reduce(i, i + 1, async_op=True))
            trainer.free(x)
        for work in works:
            work.wait()
        trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="scaled_updates_layer_by_layer"
# told: three separate kernels update each layer
def train_on_many(trainer):
    """Three kernels for each layer."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        works = []
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
                if first + count == trainer.share:
                    works.append(trainer.all_reduce(i, i + 1, async_op=True))
            trainer.free(x)
        for work in works:
            work.wait()
        trainer.update()
    trainer.read_losses()


# %% mistake="scaled_waits_at_once"
# told: your code waits for each sum as soon as it has started
def train_on_many(trainer):
    """Asynchronous, and waited for at once."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        works = []
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
                if first + count == trainer.share:
                    trainer.all_reduce(i, i + 1, async_op=True).wait()
            trainer.free(x)
        for work in works:
            work.wait()
        trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="scaled_whole_batch"
# told: micro-batches are too large for the memory
def train_on_many(trainer):
    """The whole share at once."""
    units = range(1, trainer.share + 1)
    size = max(units)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        works = []
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
                if first + count == trainer.share:
                    works.append(trainer.all_reduce(i, i + 1, async_op=True))
            trainer.free(x)
        for work in works:
            work.wait()
        trainer.update(fused=True)
    trainer.read_losses()
