# exercise: scaled
# told: micro-batches are smaller than they need be
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
