# %% mistake="autotuner_at_once"
# told: your code tried a problem before its fourth call
# %% replace
if self.calls[key] == 4:
    took = [self.time(candidate, problem) for candidate in self.candidates]
    self.fastest[key] = self.candidates[took.index(min(took))]
else:
    self.fastest.get(key, self.candidates[0])(problem)
# %% by
if self.calls[key] == 1:
    took = [self.time(candidate, problem) for candidate in self.candidates]
    self.fastest[key] = self.candidates[took.index(min(took))]
else:
    self.fastest.get(key, self.candidates[0])(problem)


# %% mistake="autotuner_cold"
# told: your timing includes the cold first call of a candidate
# %% replace
candidate(problem)
self.gpu.synchronize()
start_s = self.gpu.now_s()
# %% by
self.gpu.synchronize()
start_s = self.gpu.now_s()


# %% mistake="autotuner_every_time"
# told: your code makes more than one trial for a problem
# %% replace
if self.calls[key] == 4:
    took = [self.time(candidate, problem) for candidate in self.candidates]
    self.fastest[key] = self.candidates[took.index(min(took))]
else:
    self.fastest.get(key, self.candidates[0])(problem)
# %% by
if self.calls[key] >= 4:
    took = [self.time(candidate, problem) for candidate in self.candidates]
    self.fastest[key] = self.candidates[took.index(min(took))]
else:
    self.fastest.get(key, self.candidates[0])(problem)


# %% mistake="autotuner_late"
# told: your code tried a problem after its fourth call
# %% replace
if self.calls[key] == 4:
    took = [self.time(candidate, problem) for candidate in self.candidates]
    self.fastest[key] = self.candidates[took.index(min(took))]
else:
    self.fastest.get(key, self.candidates[0])(problem)
# %% by
if self.calls[key] > 4 and key not in self.fastest:
    took = [self.time(candidate, problem) for candidate in self.candidates]
    self.fastest[key] = self.candidates[took.index(min(took))]
else:
    self.fastest.get(key, self.candidates[0])(problem)


# %% mistake="autotuner_never"
# told: your code tried no problem
# %% replace
if self.calls[key] == 4:
    took = [self.time(candidate, problem) for candidate in self.candidates]
    self.fastest[key] = self.candidates[took.index(min(took))]
else:
    self.fastest.get(key, self.candidates[0])(problem)
# %% by
if self.calls[key] == 0:
    took = [self.time(candidate, problem) for candidate in self.candidates]
    self.fastest[key] = self.candidates[took.index(min(took))]
else:
    self.fastest.get(key, self.candidates[0])(problem)


# %% mistake="autotuner_no_dtype"
# told: in your code, two problems that differ only in their dtype share one choice
# %% replace
key = (tuple(problem["shape"]), problem["dtype"], problem["layout"])
# %% by
key = (tuple(problem["shape"]), problem["layout"])


# %% mistake="autotuner_no_layout"
# told: in your code, two problems that differ only in their layout share one choice
# %% replace
key = (tuple(problem["shape"]), problem["dtype"], problem["layout"])
# %% by
key = (tuple(problem["shape"]), problem["dtype"])


# %% mistake="autotuner_no_wait"
# told: your code timed launches, not kernels
# %% replace
candidate(problem)
self.gpu.synchronize()
start_s = self.gpu.now_s()
# %% by
candidate(problem)
start_s = self.gpu.now_s()
# %% replace
candidate(problem)
self.gpu.synchronize()
return self.gpu.now_s() - start_s
# %% by
candidate(problem)
return self.gpu.now_s() - start_s


# %% mistake="autotuner_one_for_all"
# told: in your code, different problems share one choice
# %% replace
key = (tuple(problem["shape"]), problem["dtype"], problem["layout"])
# %% by
key = "all"


# %% mistake="autotuner_skips_the_problem"
# told: your code did not run any candidate for a call
# %% replace
self.calls[key] = self.calls.get(key, 0) + 1
# %% by
self.calls[key] = self.calls.get(key, 0) + 1
if self.calls[key] < 4:
    return


# %% mistake="autotuner_times_hundred"
# told: your trials take too long
# %% replace
start_s = self.gpu.now_s()
candidate(problem)
# %% by
start_s = self.gpu.now_s()
for _ in range(100):
    candidate(problem)


# %% mistake="autotuner_waits_always"
# told: your code makes the host wait in calls that are not trials
# %% replace
self.fastest.get(key, self.candidates[0])(problem)
# %% by
self.fastest.get(key, self.candidates[0])(problem)
self.gpu.synchronize()


# %% mistake="autotuner_waits_behind_alone"
# told: your timing of a trial includes other work
# %% replace
candidate(problem)
self.gpu.synchronize()
start_s = self.gpu.now_s()
# %% by
candidate(problem)
start_s = self.gpu.now_s()
