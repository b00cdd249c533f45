# exercise: prefetcher
# told: a consumer that waits is not let go by close()


class Prefetcher(Prefetcher):
    def __iter__(self):
        while not self._closed.is_set():
            kind, value = self._queue.get()
            if kind == "item":
                yield value
                continue
            self._closed.set()
            if kind != "end":
                raise value
