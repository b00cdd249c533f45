# exercise: prefetcher
# told: the exception overtook items


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
