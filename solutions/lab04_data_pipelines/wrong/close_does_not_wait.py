# exercise: prefetcher
# told: a thread goes on after close()


class Prefetcher(Prefetcher):
    def close(self):
        self._closed.set()
