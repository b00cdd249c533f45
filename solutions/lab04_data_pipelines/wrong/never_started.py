# exercise: prefetcher
# told: the source was never asked for anything
import threading


class Prefetcher(Prefetcher):
    def __init__(self, source, *, depth):
        self._queue, self._closed = queue.Queue(depth), threading.Event()
        self._thread = threading.Thread(target=self._fill, args=(source,), daemon=True)
