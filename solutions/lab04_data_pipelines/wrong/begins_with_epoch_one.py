# exercise: bucket_sampler
# told: before any set_epoch() it is not epoch 0


class BucketSampler(BucketSampler):
    def __init__(self, lengths, *, batch_size, seed):
        super().__init__(lengths, batch_size=batch_size, seed=seed)
        self.epoch = 1
