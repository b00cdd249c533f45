# exercise: autotuner
# told: a problem was tried before it came the fourth time
class Autotuner:
    """Runs problems, and learns which candidate is the fastest for those that come often."""

    def __init__(self, candidates, gpu):
        self.candidates, self.gpu = candidates, gpu
        self.calls, self.fastest = {}, {}

    def run(self, problem):
        """Computes a problem."""
        key = (tuple(problem["shape"]), problem["dtype"], problem["layout"])
        self.calls[key] = self.calls.get(key, 0) + 1
        if self.calls[key] == 1:
            took = [self.time(candidate, problem) for candidate in self.candidates]
            self.fastest[key] = self.candidates[took.index(min(took))]
        else:
            self.fastest.get(key, self.candidates[0])(problem)

    def time(self, candidate, problem):
        candidate(problem)
        self.gpu.synchronize()
        start_s = self.gpu.now_s()
        candidate(problem)
        self.gpu.synchronize()
        return self.gpu.now_s() - start_s
