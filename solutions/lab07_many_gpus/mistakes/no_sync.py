# %% mistake="divided_by_n_too"
# told: your loop divides gradients by the wrong number
def train(ddp, batches, window):
    """By the window as well."""
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        total = sum(batch["tokens_everywhere"] for batch in part)
        ddp.zero_grad()
        for batch in part[:-1]:
            with ddp.no_sync():
                (ddp(batch) * ddp.world_size / total / len(part)).backward()
        (ddp(part[-1]) * ddp.world_size / total / len(part)).backward()
        ddp.step()


# %% mistake="every_one_sends"
# told: your loop sends gradients more often than necessary
def train(ddp, batches, window):
    """no_sync is not used."""
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        total = sum(batch["tokens_everywhere"] for batch in part)
        ddp.zero_grad()
        for batch in part[:-1]:
            (ddp(batch) * ddp.world_size / total).backward()
        (ddp(part[-1]) * ddp.world_size / total).backward()
        ddp.step()


# %% mistake="gradients_stay"
# told: in your loop, a step still contains gradients of another window
def train(ddp, batches, window):
    """Nothing is cleared."""
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        total = sum(batch["tokens_everywhere"] for batch in part)
        for batch in part[:-1]:
            with ddp.no_sync():
                (ddp(batch) * ddp.world_size / total).backward()
        (ddp(part[-1]) * ddp.world_size / total).backward()
        ddp.step()


# %% mistake="last_one_silent"
# told: in your loop, a step uses gradients that were not all summed over the ranks
def train(ddp, batches, window):
    """The last one is inside as well."""
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        total = sum(batch["tokens_everywhere"] for batch in part)
        ddp.zero_grad()
        for batch in part:
            with ddp.no_sync():
                (ddp(batch) * ddp.world_size / total).backward()
        ddp.step()


# %% mistake="left_over_is_left"
# told: your loop does not use each micro-batch once, in order
def train(ddp, batches, window):
    """Whole windows alone."""
    for start in range(0, len(batches) // window * window, window):
        part = batches[start : start + window]
        total = sum(batch["tokens_everywhere"] for batch in part)
        ddp.zero_grad()
        for batch in part[:-1]:
            with ddp.no_sync():
                (ddp(batch) * ddp.world_size / total).backward()
        (ddp(part[-1]) * ddp.world_size / total).backward()
        ddp.step()


# %% mistake="mean_of_micro_batches"
# told: your loop gives tokens of the same window different weights
def train(ddp, batches, window):
    """Each micro-batch by its own tokens."""
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        ddp.zero_grad()
        for batch in part[:-1]:
            with ddp.no_sync():
                (
                    ddp(batch) * ddp.world_size / batch["tokens_everywhere"] / len(part)
                ).backward()
        (
            ddp(part[-1]) * ddp.world_size / part[-1]["tokens_everywhere"] / len(part)
        ).backward()
        ddp.step()


# %% mistake="own_tokens"
# told: in your loop, each rank divides by its own number of tokens
def train(ddp, batches, window):
    """Tokens of this rank."""
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        total = sum(batch["tokens"] for batch in part)
        ddp.zero_grad()
        for batch in part[:-1]:
            with ddp.no_sync():
                (ddp(batch) * ddp.world_size / total).backward()
        (ddp(part[-1]) * ddp.world_size / total).backward()
        ddp.step()


# %% mistake="ranks_divide_twice"
# told: your loss does not undo DDP's division by the number of ranks
def train(ddp, batches, window):
    """No factor P."""
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        total = sum(batch["tokens_everywhere"] for batch in part)
        ddp.zero_grad()
        for batch in part[:-1]:
            with ddp.no_sync():
                (ddp(batch) / total).backward()
        (ddp(part[-1]) / total).backward()
        ddp.step()


# %% mistake="silent_backward_only"
# told: your loop runs only the backward pass of a micro-batch inside no_sync()
def train(ddp, batches, window):
    """Only the backward pass is inside."""
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        total = sum(batch["tokens_everywhere"] for batch in part)
        ddp.zero_grad()
        for batch in part[:-1]:
            loss = ddp(batch) * ddp.world_size / total
            with ddp.no_sync():
                loss.backward()
        (ddp(part[-1]) * ddp.world_size / total).backward()
        ddp.step()
