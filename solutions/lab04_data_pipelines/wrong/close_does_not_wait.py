# exercise: prefetcher
# told: a thread goes on after close()
# like: close_only_says_so.py


class Prefetcher(Prefetcher):
    def close(self):
        self._closed.set()
