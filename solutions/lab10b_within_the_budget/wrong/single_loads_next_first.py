# exercise: single
# told: the host loads the next units before it has issued the passes
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
