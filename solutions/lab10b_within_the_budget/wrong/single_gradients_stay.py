# exercise: single
# told: gradients of outputs are kept after their pass
def train_on_one(trainer):
    """Gives activations back, and not the gradients."""
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
                trainer.free(held.pop())
                gradient = before
            trainer.free(x)
        trainer.update(fused=True)
    trainer.read_losses()
