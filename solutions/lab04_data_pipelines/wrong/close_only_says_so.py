# exercise: prefetcher
# told: a thread goes on after close()


class Prefetcher(Prefetcher):
    def _put(self, kind, value):
        self._queue.put((kind, value))
        return True

    def close(self):
        self._closed.set()
