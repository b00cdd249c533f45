# exercise: prefetcher
# told: the consumer waits for ever
# like: errors_kill_the_thread.py
import queue


class Prefetcher(Prefetcher):
    def _put(self, kind, value):
        try:
            self._queue.put_nowait((kind, value))
        except queue.Full:
            pass
        return True
