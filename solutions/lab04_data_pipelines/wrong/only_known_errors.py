# exercise: prefetcher
# told: the consumer waits for ever


class Prefetcher(Prefetcher):
    def _fill(self, source):
        try:
            for item in source:
                if not self._put("item", item):
                    return
            self._put("end", None)
        except (ArithmeticError, LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
            self._put("error", error)
