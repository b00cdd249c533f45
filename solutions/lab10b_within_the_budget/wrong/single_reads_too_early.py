# exercise: single
# told: a loss is read before all its units are in it
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
