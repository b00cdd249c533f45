# exercise: prefetcher
# told: nothing is fetched ahead


class Prefetcher:
    def __init__(self, source, *, depth):
        self.source = source

    def __iter__(self):
        yield from self.source

    def close(self):
        pass
