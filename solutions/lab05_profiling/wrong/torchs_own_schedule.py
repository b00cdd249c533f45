# exercise: schedule_states
# told: a later cycle waits too long or not long enough


def schedule_states(steps, *, wait, warmup, active, repeat, skip_first=0, stretch=1):
    at = torch.profiler.schedule(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first)
    names = {"NONE": "none", "WARMUP": "warmup", "RECORD": "record", "RECORD_AND_SAVE": "record and save"}
    return [names[at(step).name] for step in range(steps)]
