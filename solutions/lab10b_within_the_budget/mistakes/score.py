# %% mistake="score_all_but_one"
# told: no offer has your number of GPUs
def choose_gpus(job, offers, budget):
    """One GPU is for something else."""
    return max(offer.ranks for offer in offers) - 1


# %% mistake="score_cheapest"
# told: the budget pays for more GPUs
def choose_gpus(job, offers, budget):
    """Always one GPU: it costs least."""
    return min(offer.ranks for offer in offers)


def train_within(trainer):
    """The training job, in micro-batches that fit one GPU."""
    copies, works = trainer.Stream(), []

    def sum_layer(i):
        works.append(trainer.all_reduce(i, i + 1, async_op=True))

    job = trainer.job
    size = max(
        n
        for n in range(1, -(-trainer.share // 2) + 1)
        if job.peak_bytes(n) <= job.memory_bytes
    )
    for step in range(trainer.steps):
        first, count = 0, size if step else 1
        while first < trainer.share:
            count = min(count, size, trainer.share - first)
            data = trainer.load(step, first, count, dtype="uint8", pinned=True)
            arrived = trainer.Event()
            with trainer.stream(copies):
                x = trainer.to_device(data, non_blocking=True)
                arrived.record()
            arrived.wait()
            first += count
            passes(
                trainer, step, x, after=sum_layer if first == trainer.share else None
            )
            count *= 2
        while works:
            works.pop(0).wait()
        trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="score_loads_all_first"
# told: the GPU is idle while the first, large micro-batch is loaded
def train_within(trainer):
    """As in the section before."""
    train_on_many(trainer)


# %% mistake="score_most_gpus"
# told: the budget does not pay for your number of GPUs
def choose_gpus(job, offers, budget):
    """As many as there are."""
    return max(offer.ranks for offer in offers)


# %% mistake="score_naive"
# told: your run is too slow for its budget
def train_within(trainer):
    """What works, and nothing more."""
    naive(trainer)


# %% mistake="score_no_margin"
# told: the budget would pay for your number of GPUs only at an efficiency of nearly 100 %
# %% replace
run_s = lower_bound(job.on(offer.ranks)).seconds / 0.85
# %% by
run_s = lower_bound(job.on(offer.ranks)).seconds


# %% mistake="score_one_gpu_sums_nothing"
# told: your program never sums gradients over the GPUs
def train_within(trainer):
    """The program for one GPU on several."""
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


# %% mistake="score_place_in_the_list"
# told: choose_gpus() returned an offer's position in the list
def choose_gpus(job, offers, budget):
    """The index of the right offer."""
    paid = {}
    for index, offer in enumerate(offers):
        run_s = lower_bound(job.on(offer.ranks)).seconds / 0.85
        if run_s * offer.ranks * offer.price_per_gpu_s <= budget:
            paid[run_s] = index
    return paid[min(paid)]


# %% mistake="score_price_of_one"
# told: the budget does not pay for your number of GPUs
# like: score_most_gpus
def choose_gpus(job, offers, budget):
    """Pays for one of the GPUs."""
    paid = {}
    for offer in offers:
        run_s = lower_bound(job.on(offer.ranks)).seconds
        if run_s * offer.price_per_gpu_s <= budget:
            paid[run_s] = offer.ranks
    return paid[min(paid)]


# %% mistake="score_skips_a_layer"
# told: your program updates a layer without any gradient
def train_within(trainer):
    """Layer 0 has no backward pass: it is the longest way."""
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
            for i in reversed(range(1, trainer.layers)):
                before = trainer.backward(i, held[i], gradient, fused=True)
                trainer.free(gradient, held.pop())
                gradient = before
                if first + count == trainer.share:
                    works.append(trainer.all_reduce(i, i + 1, async_op=True))
            trainer.free(gradient)
            trainer.free(x)
        for work in works:
            work.wait()
        trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="score_skips_the_last_step"
# told: your program never reads the loss of a step
def train_within(trainer):
    """Saves the last step."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    for step in range(trainer.steps - 1):
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
    for step in range(trainer.steps - 1):
        trainer.read_loss(step)


# %% mistake="score_skips_the_last_update"
# told: your program does not update every layer in every step
def train_within(trainer):
    """Nobody reads a loss after the last update."""
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
        if step < trainer.steps - 1:
            trainer.update(fused=True)
    trainer.read_losses()


# %% mistake="score_skips_units"
# told: one of your updates does not include all units of its step
def train_within(trainer):
    """A tenth of the data is enough."""
    job = trainer.job
    units = range(1, trainer.share + 1)
    size = max(n for n in units if job.peak_bytes(n) <= job.memory_bytes)
    copies = trainer.Stream()
    for step in range(trainer.steps):
        works = []
        for first in range(0, trainer.share - 1, size):
            count = min(size, trainer.share - 1 - first)
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
                if first + count == trainer.share - 1:
                    works.append(trainer.all_reduce(i, i + 1, async_op=True))
            trainer.free(x)
        for work in works:
            work.wait()
        trainer.update(fused=True)
    trainer.read_losses()
