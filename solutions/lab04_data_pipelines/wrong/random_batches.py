# exercise: bucket_sampler
# told: too much padding


class BucketSampler:
    def __init__(self, lengths, *, batch_size, seed):
        self.lengths, self.batch_size, self.seed, self.epoch = lengths, batch_size, seed, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self):
        order = random.Random(f"{self.seed} {self.epoch}").sample(range(len(self.lengths)), len(self.lengths))
        return iter([order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)])
