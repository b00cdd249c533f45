# exercise: bucket_sampler
# told: more than one batch is not full


class BucketSampler(BucketSampler):
    def __iter__(self):
        made = list(super().__iter__())
        short = min(made, key=len)
        if len(short) < self.batch_size - 1:
            other = next(batch for batch in made if batch is not short)
            short.append(other.pop())
        return iter(made)
