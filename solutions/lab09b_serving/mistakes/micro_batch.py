# %% mistake="wait_of_the_newest"
# told: the wait begins again with each request that comes
# why: each arrival puts the batch off, so under a steady load it begins only when it is full
# next: whose wait does max_wait_s limit?
# %% replace
due_s = queue[0].arrival_s + limits.max_wait_s
# %% by
due_s = queue[-1].arrival_s + limits.max_wait_s


# %% mistake="wait_from_now"
# told: the wait begins at the moment at which due is asked
# why: what a request has waited already, during a batch or for company, is not counted
# next: max_wait_s is counted from the arrival of the oldest
# %% replace
due_s = queue[0].arrival_s + limits.max_wait_s
# %% by
due_s = queue[0].arrival_s + limits.max_wait_s
if len(queue) < limits.max_batch and now_s < due_s:
    return now_s + limits.max_wait_s


# %% mistake="runs_at_once"
# told: a batch runs as soon as a request waits
# why: max_wait_s is never waited, so a batch has only what came during the batch before it
# next: until when may the oldest wait for company?
def due(now_s, queue, limits):
    """No wait."""
    return [one.number for one in queue[: limits.max_batch]]


# %% mistake="full_batches_only"
# told: only full batches run
# why: max_wait_s ends no wait, so the last ones wait for ever, and by night everybody does
# next: what is due when the oldest has waited max_wait_s, and few have come?
def due(now_s, queue, limits):
    """A full batch or none."""
    if len(queue) < limits.max_batch:
        return float("inf")
    return [one.number for one in queue[: limits.max_batch]]


# %% mistake="one_more_than_full"
# told: a full batch is not seen as full
# why: with exactly max_batch requests it waits for another one, which it cannot take
# next: how many must wait for the batch to be full?
# %% replace
if len(queue) < limits.max_batch and now_s < due_s:
    return due_s
# %% by
if len(queue) <= limits.max_batch and now_s < due_s:
    return due_s


# %% mistake="one_at_a_time"
# told: a batch has fewer requests than it may
def due(now_s, queue, limits):
    """The oldest alone."""
    due_s = queue[0].arrival_s + limits.max_wait_s
    if len(queue) < limits.max_batch and now_s < due_s:
        return due_s
    return [queue[0].number]


# %% mistake="newest_first"
# told: a batch has other requests than the oldest
def due(now_s, queue, limits):
    """Whoever came last."""
    due_s = queue[0].arrival_s + limits.max_wait_s
    if len(queue) < limits.max_batch and now_s < due_s:
        return due_s
    return [one.number for one in queue[-limits.max_batch :]]


# %% mistake="everybody_who_waits"
# told: a batch has more than max_batch
# %% replace
return [one.number for one in queue[: limits.max_batch]]
# %% by
return [one.number for one in queue]


# %% mistake="waits_at_the_moment"
# told: due waits until a time that is not ahead
# %% replace
if len(queue) < limits.max_batch and now_s < due_s:
    return due_s
# %% by
if len(queue) < limits.max_batch and now_s <= due_s:
    return due_s


# %% mistake="nobody_given_up"
# told: a request that waited too long is not given up
def expired(now_s, queue, limits):
    """All may wait."""
    return []


# %% mistake="given_up_after_max_wait"
# told: requests are given up after max_wait_s
# why: max_wait_s ends the wait for company, and timeout_s that for an answer
# next: which of the two limits says that a client has given up?
def expired(now_s, queue, limits):
    """The other limit."""
    return [one.number for one in queue if now_s - one.arrival_s > limits.max_wait_s]


# %% mistake="given_up_at_the_timeout"
# told: who has waited for exactly timeout_s is given up
# why: a client waits for timeout_s, and gives up after that
# next: which comparison is "longer than"?
def expired(now_s, queue, limits):
    """One moment too early."""
    return [one.number for one in queue if now_s - one.arrival_s >= limits.timeout_s]


# %% mistake="one_too_many_in_the_queue"
# told: the queue takes one request more than max_queue
# why: queue does not yet hold the request that comes
# next: how many may wait already for another one to fit?
def accepts(queue, limits):
    """One more."""
    return len(queue) <= limits.max_queue


# %% mistake="everybody_accepted"
# told: the queue takes more requests than max_queue
def accepts(queue, limits):
    """All of them."""
    return True


# %% mistake="queue_of_a_batch"
# told: a request is refused when a batch of them waits
# why: max_batch bounds what runs, and the queue may hold more than that
# next: which of the limits counts those who wait?
def accepts(queue, limits):
    """The other limit."""
    return len(queue) < limits.max_batch
