# %% mistake="close_does_not_wait"
# told: your thread is still running after close()
# like: close_only_says_so
class Prefetcher(Prefetcher):
    def close(self):
        self._closed.set()


# %% mistake="close_only_says_so"
# told: your thread is still running after close()
class Prefetcher(Prefetcher):
    def _put(self, kind, value):
        self._queue.put((kind, value))
        return True

    def close(self):
        self._closed.set()


# %% mistake="consumer_waits_in_get"
# told: your close() does not wake a consumer that is waiting for an item
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


# %% mistake="dropped_where_full"
# told: your code dropped items, and the consumer waits forever
import queue


class Prefetcher(Prefetcher):
    def _put(self, kind, value):
        try:
            self._queue.put_nowait((kind, value))
        except queue.Full:
            pass
        return True


# %% mistake="error_beside_the_queue"
# told: in your code, the exception overtook items
class Prefetcher(Prefetcher):
    def __init__(self, source, *, depth):
        self._error = None
        super().__init__(source, depth=depth)

    def _put(self, kind, value):
        if kind == "error":
            self._error = value
            return True
        return super()._put(kind, value)

    def __iter__(self):
        for item in super().__iter__():
            if self._error is not None:
                break
            yield item
        if self._error is not None:
            raise self._error


# %% mistake="errors_are_copied"
# told: your code passed on a copy of the exception
class Prefetcher(Prefetcher):
    def __iter__(self):
        try:
            yield from super().__iter__()
        except Exception as error:
            raise type(error)(*error.args) from None


# %% mistake="errors_end_the_epoch"
# told: your code swallowed the source's exception
class Prefetcher(Prefetcher):
    def _fill(self, source):
        try:
            for item in source:
                if not self._put("item", item):
                    return
        except Exception:
            pass
        self._put("end", None)


# %% mistake="errors_kill_the_thread"
# told: the consumer waits forever
# like: only_known_errors
class Prefetcher(Prefetcher):
    def _fill(self, source):
        try:
            for item in source:
                if not self._put("item", item):
                    return
            self._put("end", None)
        except Exception:
            return


# %% mistake="never_started"
# told: your code never read the source
import threading


class Prefetcher(Prefetcher):
    def __init__(self, source, *, depth):
        self._queue, self._closed = queue.Queue(depth), threading.Event()
        self._thread = threading.Thread(target=self._fill, args=(source,), daemon=True)


# %% mistake="no_thread_at_all"
# told: your code fetches nothing ahead
class Prefetcher:
    def __init__(self, source, *, depth):
        self.source = source

    def __iter__(self):
        yield from self.source

    def close(self):
        pass


# %% mistake="none_is_the_end"
# told: your code lost falsy items
class Prefetcher(Prefetcher):
    def __iter__(self):
        for item in super().__iter__():
            if item is None:
                return
            yield item


# %% mistake="only_known_errors"
# told: the consumer waits forever
class Prefetcher(Prefetcher):
    def _fill(self, source):
        try:
            for item in source:
                if not self._put("item", item):
                    return
            self._put("end", None)
        except (
            ArithmeticError,
            LookupError,
            OSError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            self._put("error", error)


# %% mistake="unbounded_queue"
# told: your queue has no bound
class Prefetcher:
    def __init__(self, source, *, depth):
        self.queue, self.over = queue.Queue(), threading.Event()
        self.thread = threading.Thread(target=self.fill, args=(source,), daemon=True)
        self.thread.start()

    def fill(self, source):
        try:
            for item in source:
                if self.over.is_set():
                    return
                self.queue.put((item, None))
            self.queue.put((None, StopIteration()))
        except BaseException as error:
            self.queue.put((None, error))

    def __iter__(self):
        while True:
            item, error = self.queue.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item

    def close(self):
        self.over.set()
        self.thread.join()
