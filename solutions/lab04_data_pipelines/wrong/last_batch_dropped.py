# exercise: bucket_sampler
# told: an epoch is no permutation


class BucketSampler:
    def __init__(self, lengths, *, batch_size, seed):
        self.lengths, self.batch_size, self.seed, self.epoch = lengths, batch_size, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self):
        rng = random.Random(f"{self.seed} {self.epoch}")
        order = rng.sample(range(len(self.lengths)), len(self.lengths))
        pool, made = 24 * self.batch_size, []
        for start in range(0, len(order), pool):
            near = sorted(order[start : start + pool], key=self.lengths.__getitem__)
            made += [near[i : i + self.batch_size] for i in range(0, len(near) - self.batch_size + 1, self.batch_size)]
        rng.shuffle(made)
        return iter(made)
