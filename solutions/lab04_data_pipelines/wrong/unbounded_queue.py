# exercise: prefetcher
# told: the queue has no bound


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
