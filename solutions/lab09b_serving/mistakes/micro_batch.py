# %% mistake="wait_of_the_newest"
# told: in your due(), the wait starts again with every request that arrives
# why: each arrival postpones the batch, so under a steady load a batch starts only when it is full
# next: which request's wait does `max_wait_s` limit?
# %% replace
due_s = queue[0].arrival_s + limits.max_wait_s
# %% by
due_s = queue[-1].arrival_s + limits.max_wait_s


# %% mistake="wait_from_now"
# told: in your code, the wait starts only when due() is called
# why: this leaves out the time that a request has already waited
# next: count `max_wait_s` from the arrival of the oldest request
# %% replace
due_s = queue[0].arrival_s + limits.max_wait_s
# %% by
due_s = queue[0].arrival_s + limits.max_wait_s
if len(queue) < limits.max_batch and now_s < due_s:
    return now_s + limits.max_wait_s


# %% mistake="runs_at_once"
# told: your due() runs a batch as soon as any request waits
# why: due() ignores `max_wait_s`, so a batch has only the requests that arrived during the previous batch
# next: until when may the oldest request wait for others?
def due(now_s, queue, limits):
    """No wait."""
    return [one.number for one in queue[: limits.max_batch]]


# %% mistake="full_batches_only"
# told: your due() runs only full batches
# why: no wait ends after `max_wait_s`, so the last requests wait forever; at a low load, all requests do
# next: which batch should run when the oldest request has waited `max_wait_s` and only a few requests have arrived?
def due(now_s, queue, limits):
    """A full batch or none."""
    if len(queue) < limits.max_batch:
        return float("inf")
    return [one.number for one in queue[: limits.max_batch]]


# %% mistake="one_more_than_full"
# told: your due() does not recognize a full batch
# why: with exactly `max_batch` requests, your code waits for another one, for which the batch has no room
# next: how many requests make a batch full?
# %% replace
if len(queue) < limits.max_batch and now_s < due_s:
    return due_s
# %% by
if len(queue) <= limits.max_batch and now_s < due_s:
    return due_s


# %% mistake="one_at_a_time"
# told: one of your batches leaves out requests that it has room for
def due(now_s, queue, limits):
    """The oldest alone."""
    due_s = queue[0].arrival_s + limits.max_wait_s
    if len(queue) < limits.max_batch and now_s < due_s:
        return due_s
    return [queue[0].number]


# %% mistake="newest_first"
# told: one of your batches does not consist of the oldest requests
def due(now_s, queue, limits):
    """Whoever came last."""
    due_s = queue[0].arrival_s + limits.max_wait_s
    if len(queue) < limits.max_batch and now_s < due_s:
        return due_s
    return [one.number for one in queue[-limits.max_batch :]]


# %% mistake="everybody_who_waits"
# told: one of your batches has more than `max_batch` requests
# %% replace
return [one.number for one in queue[: limits.max_batch]]
# %% by
return [one.number for one in queue]


# %% mistake="waits_at_the_moment"
# told: due() returned a time that is not in the future
# %% replace
if len(queue) < limits.max_batch and now_s < due_s:
    return due_s
# %% by
if len(queue) < limits.max_batch and now_s <= due_s:
    return due_s


# %% mistake="nobody_given_up"
# told: your rules do not give up a request that has waited too long
def expired(now_s, queue, limits):
    """All may wait."""
    return []


# %% mistake="given_up_after_max_wait"
# told: your expired() gives up requests after `max_wait_s`
# why: `max_wait_s` limits the wait for other requests; `timeout_s` limits the wait for an answer
# next: after which of the two limits has a client given up?
def expired(now_s, queue, limits):
    """The other limit."""
    return [one.number for one in queue if now_s - one.arrival_s > limits.max_wait_s]


# %% mistake="given_up_at_the_timeout"
# told: your expired() gives up a request that has waited for exactly `timeout_s`
# why: a client waits for `timeout_s`, and gives up only after that
# next: use the comparison that means "longer than"
def expired(now_s, queue, limits):
    """One moment too early."""
    return [one.number for one in queue if now_s - one.arrival_s >= limits.timeout_s]


# %% mistake="one_too_many_in_the_queue"
# told: your accepts() lets one request more than `max_queue` wait
# why: `queue` does not yet include the arriving request
# next: how many requests may already be waiting if there must be room for one more?
def accepts(queue, limits):
    """One more."""
    return len(queue) <= limits.max_queue


# %% mistake="everybody_accepted"
# told: your rules let more than `max_queue` requests wait
def accepts(queue, limits):
    """All of them."""
    return True


# %% mistake="queue_of_a_batch"
# told: your accepts() refuses a request when `max_batch` requests wait
# why: `max_batch` limits how many requests run together, but more requests may wait
# next: which limit applies to the requests that wait?
def accepts(queue, limits):
    """The other limit."""
    return len(queue) < limits.max_batch
