# exercise: prefetcher
# told: the consumer waits for ever
# like: only_known_errors.py


class Prefetcher(Prefetcher):
    def _fill(self, source):
        try:
            for item in source:
                if not self._put("item", item):
                    return
            self._put("end", None)
        except Exception:
            return
