# exercise: prefetcher
# told: items that are false were lost


class Prefetcher(Prefetcher):
    def __iter__(self):
        for item in super().__iter__():
            if item is None:
                return
            yield item
