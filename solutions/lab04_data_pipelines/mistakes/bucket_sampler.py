# %% mistake="begins_with_epoch_one"
# told: before any call to set_epoch(), your sampler's epoch is not 0
class BucketSampler(BucketSampler):
    def __init__(self, lengths, *, batch_size, seed):
        super().__init__(lengths, batch_size=batch_size, seed=seed)
        self.epoch = 1


# %% mistake="draws_on_where_it_stopped"
# told: iterating over your sampler again gave a different order
class BucketSampler:
    def __init__(self, lengths, *, batch_size, seed):
        self.lengths, self.batch_size, self.seed = lengths, batch_size, seed
        self.set_epoch(0)

    def set_epoch(self, epoch):
        self.rng = random.Random(f"{self.seed} {epoch}")

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self):
        rng = self.rng
        order, size, made = (
            rng.sample(range(len(self.lengths)), len(self.lengths)),
            self.batch_size,
            [],
        )
        for start in range(0, len(order), 24 * size):
            near = sorted(
                order[start : start + 24 * size], key=self.lengths.__getitem__
            )
            made += [near[i : i + size] for i in range(0, len(near), size)]
        rng.shuffle(made)
        return iter(made)


# %% mistake="epoch_ignored"
# told: your sampler gives every epoch the same order
class BucketSampler:
    def __init__(self, lengths, *, batch_size, seed):
        self.lengths, self.batch_size, self.seed, self.epoch = (
            lengths,
            batch_size,
            seed,
            0,
        )

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self):
        order = sorted(range(len(self.lengths)), key=self.lengths.__getitem__)
        made = [
            order[i : i + self.batch_size]
            for i in range(0, len(order), self.batch_size)
        ]
        random.Random(self.seed).shuffle(made)
        return iter(made)


# %% mistake="everybodys_generator_reseeded"
# told: your sampler changes the random numbers that the rest of the program draws
class BucketSampler:
    def __init__(self, lengths, *, batch_size, seed):
        self.lengths, self.batch_size, self.seed, self.epoch = (
            lengths,
            batch_size,
            seed,
            0,
        )

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self):
        random.seed(f"{self.seed} {self.epoch}")
        order, size, made = (
            random.sample(range(len(self.lengths)), len(self.lengths)),
            self.batch_size,
            [],
        )
        for start in range(0, len(order), 24 * size):
            near = sorted(
                order[start : start + 24 * size], key=self.lengths.__getitem__
            )
            made += [near[i : i + size] for i in range(0, len(near), size)]
        random.shuffle(made)
        return iter(made)


# %% mistake="hash_of_a_text"
# told: your sampler gave different orders for the same seed and epoch
# like: seed_ignored
class BucketSampler:
    def __init__(self, lengths, *, batch_size, seed):
        self.lengths, self.batch_size, self.seed, self.epoch = (
            lengths,
            batch_size,
            seed,
            0,
        )

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self):
        rng = random.Random(hash(f"{self.seed} {self.epoch}"))
        order, size, made = (
            rng.sample(range(len(self.lengths)), len(self.lengths)),
            self.batch_size,
            [],
        )
        for start in range(0, len(order), 24 * size):
            near = sorted(
                order[start : start + 24 * size], key=self.lengths.__getitem__
            )
            made += [near[i : i + size] for i in range(0, len(near), size)]
        rng.shuffle(made)
        return iter(made)


# %% mistake="last_batch_dropped"
# told: an epoch of your sampler is not a permutation
# %% replace
self.lengths, self.batch_size = lengths, batch_size
self.seed, self.epoch = seed, 0
# %% by
self.lengths, self.batch_size, self.seed, self.epoch = lengths, batch_size, seed, 0
# %% replace
rng, size = random.Random(f"{self.seed} {self.epoch}"), self.batch_size
# %% by
rng = random.Random(f"{self.seed} {self.epoch}")
# %% replace
pool, made = 24 * size, []
# %% by
pool, made = 24 * self.batch_size, []
# %% replace
made += [near[i : i + size] for i in range(0, len(near), size)]
# %% by
made += [
    near[i : i + self.batch_size]
    for i in range(0, len(near) - self.batch_size + 1, self.batch_size)
]


# %% mistake="only_the_first_epoch_differs"
# told: your epochs repeat
class BucketSampler:
    def __init__(self, lengths, *, batch_size, seed):
        self.lengths, self.batch_size, self.seed, self.epoch = (
            lengths,
            batch_size,
            seed,
            0,
        )

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self):
        rng = random.Random(f"{self.seed} {self.epoch > 0}")
        order, size, made = (
            rng.sample(range(len(self.lengths)), len(self.lengths)),
            self.batch_size,
            [],
        )
        for start in range(0, len(order), 24 * size):
            near = sorted(
                order[start : start + 24 * size], key=self.lengths.__getitem__
            )
            made += [near[i : i + size] for i in range(0, len(near), size)]
        rng.shuffle(made)
        return iter(made)


# %% mistake="pools_in_order"
# told: your batches are in the order of their lengths
class BucketSampler:
    def __init__(self, lengths, *, batch_size, seed):
        self.lengths, self.batch_size, self.seed, self.epoch = (
            lengths,
            batch_size,
            seed,
            0,
        )

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
            made += [
                near[i : i + self.batch_size]
                for i in range(0, len(near), self.batch_size)
            ]
        return iter(made)


# %% mistake="random_batches"
# told: your batches have too much padding
class BucketSampler:
    def __init__(self, lengths, *, batch_size, seed):
        self.lengths, self.batch_size, self.seed, self.epoch = (
            lengths,
            batch_size,
            seed,
            0,
        )

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self):
        order = random.Random(f"{self.seed} {self.epoch}").sample(
            range(len(self.lengths)), len(self.lengths)
        )
        return iter(
            [
                order[i : i + self.batch_size]
                for i in range(0, len(order), self.batch_size)
            ]
        )


# %% mistake="seed_ignored"
# told: your sampler gave different orders for the same seed and epoch
class BucketSampler:
    def __init__(self, lengths, *, batch_size, seed):
        self.lengths, self.batch_size, self.seed, self.epoch = (
            lengths,
            batch_size,
            seed,
            0,
        )

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self):
        rng = np.random.default_rng()
        order = rng.permutation(len(self.lengths)).tolist()
        pool, made = 24 * self.batch_size, []
        for start in range(0, len(order), pool):
            near = sorted(order[start : start + pool], key=self.lengths.__getitem__)
            made += [
                near[i : i + self.batch_size]
                for i in range(0, len(near), self.batch_size)
            ]
        random.Random(self.epoch).shuffle(made)
        return iter(made)


# %% mistake="sorted_then_shuffled_batches"
# told: in your sampler, the same samples share a batch in every epoch
class BucketSampler:
    def __init__(self, lengths, *, batch_size, seed):
        self.lengths, self.batch_size, self.seed, self.epoch = (
            lengths,
            batch_size,
            seed,
            0,
        )

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self):
        rng = random.Random(f"{self.seed} {self.epoch}")
        order = sorted(range(len(self.lengths)), key=self.lengths.__getitem__)
        made = [
            order[i : i + self.batch_size]
            for i in range(0, len(order), self.batch_size)
        ]
        rng.shuffle(made)
        return iter(made)


# %% mistake="the_librarys_batches"
# told: bucket_batches is what this exercise asks you to write
class BucketSampler:
    def __init__(self, lengths, *, batch_size, seed):
        self.lengths, self.batch_size, self.seed, self.epoch = (
            lengths,
            batch_size,
            seed,
            0,
        )

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self):
        from edl_labs.pipeline import bucket_batches

        return iter(
            bucket_batches(
                self.lengths,
                self.batch_size,
                window=24,
                seed=self.seed,
                epoch=self.epoch,
            )
        )


# %% mistake="two_batches_share_the_rest"
# told: more than one of your batches is not full
class BucketSampler(BucketSampler):
    def __iter__(self):
        made = list(super().__iter__())
        short = min(made, key=len)
        if len(short) < self.batch_size - 1:
            other = next(batch for batch in made if batch is not short)
            short.append(other.pop())
        return iter(made)
