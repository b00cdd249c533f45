# exercise: bucket_sampler
# told: the same seed and epoch gave another order
# like: seed_ignored.py


class BucketSampler:
    def __init__(self, lengths, *, batch_size, seed):
        self.lengths, self.batch_size, self.seed, self.epoch = lengths, batch_size, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self):
        rng = random.Random(hash(f"{self.seed} {self.epoch}"))
        order, size, made = rng.sample(range(len(self.lengths)), len(self.lengths)), self.batch_size, []
        for start in range(0, len(order), 24 * size):
            near = sorted(order[start : start + 24 * size], key=self.lengths.__getitem__)
            made += [near[i : i + size] for i in range(0, len(near), size)]
        rng.shuffle(made)
        return iter(made)
