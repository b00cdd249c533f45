# exercise: prefetcher
# told: a copy of the exception reached the consumer


class Prefetcher(Prefetcher):
    def __iter__(self):
        try:
            yield from super().__iter__()
        except Exception as error:
            raise type(error)(*error.args) from None
