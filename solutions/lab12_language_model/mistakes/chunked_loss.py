# %% mistake="chunk_all_logits"
# told: Your function computes all logits at once
class ChunkedLoss(torch.autograd.Function):
    """The loss in chunks of rows; both gradients are made in the forward pass."""

    @staticmethod
    def forward(ctx, hidden, weight, targets, rows, smoothing, mean):
        """The loss, without dimensions; keeps the gradients of hidden and weight."""
        used = targets != -100
        count = used.sum() if mean else 1
        targets, words = targets.clamp(min=0)[:, None], len(weight)
        of_hidden, of_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        loss = hidden.new_zeros(())
        all_logits = hidden @ weight.T
        for at in range(0, len(hidden), rows):
            chunk = slice(at, at + rows)
            share = used[chunk].to(hidden.dtype)[:, None] / count
            logs = all_logits[chunk].log_softmax(1)
            picked = logs.gather(1, targets[chunk])
            each = (1 - smoothing) * picked + smoothing * logs.mean(1, keepdim=True)
            loss -= (share * each).sum()
            grad = logs.exp_().sub_(smoothing / words)
            grad.scatter_add_(1, targets[chunk], torch.full_like(picked, smoothing - 1))
            grad *= share
            of_hidden[chunk] = grad @ weight
            of_weight += grad.T @ hidden[chunk]
        ctx.save_for_backward(of_hidden, of_weight)
        return loss

    @staticmethod
    def backward(ctx, grad):
        """Gradients of forward's six arguments, for a loss whose gradient is grad."""
        of_hidden, of_weight = ctx.saved_tensors
        return grad * of_hidden, grad * of_weight, None, None, None, None


def chunked_loss(hidden, weight, targets, rows, smoothing, mean):
    """The loss of the head `weight` on `hidden`, `rows` positions at a time."""
    return ChunkedLoss.apply(hidden, weight, targets, rows, smoothing, mean)


# %% mistake="chunk_always_mean"
# told: Your function returns a mean; expected the sum
# %% replace
count = used.sum() if mean else 1
# %% by
count = used.sum()


# %% mistake="chunk_always_sum"
# told: Your function returns a sum; expected the mean
# %% replace
count = used.sum() if mean else 1
# %% by
count = 1


# %% mistake="chunk_autograd_keeps_chunks"
# told: Your function keeps tensors of earlier chunks
# like: chunk_keeps_chunks
def chunked_loss(hidden, weight, targets, rows, smoothing, mean):
    """The loss of the head `weight` on `hidden`, `rows` positions at a time."""
    total = hidden.new_zeros(())
    for at in range(0, len(hidden), rows):
        logits = hidden[at : at + rows] @ weight.T
        total = total + F.cross_entropy(
            logits, targets[at : at + rows], reduction="sum", label_smoothing=smoothing
        )
    return total / (targets != -100).sum() if mean else total


# %% mistake="chunk_computed_twice"
# told: Your function computes the logits twice
from torch.utils.checkpoint import checkpoint


def chunked_loss(hidden, weight, targets, rows, smoothing, mean):
    """The loss of the head `weight` on `hidden`, `rows` positions at a time."""

    def of_chunk(part, following):
        logs = (part @ weight.T).log_softmax(1)
        picked = logs.gather(1, following.clamp(min=0)[:, None])[:, 0]
        each = (1 - smoothing) * picked + smoothing * logs.mean(1)
        return -(each * (following != -100)).sum()

    total = hidden.new_zeros(())
    for at in range(0, len(hidden), rows):
        chunk = slice(at, at + rows)
        total = total + checkpoint(
            of_chunk, hidden[chunk], targets[chunk], use_reentrant=False
        )
    return total / (targets != -100).sum() if mean else total


# %% mistake="chunk_gradient_of_sum"
# told: Your gradient of `hidden` is a multiple of the right gradient
# %% replace
grad *= share
# %% by
grad *= used[chunk][:, None]


# %% mistake="chunk_ignored_counted"
# told: Your function adds the loss of ignored targets
# %% replace
used = targets != -100
# %% by
used = torch.ones_like(targets)


# %% mistake="chunk_ignored_in_gradient"
# told: Your function gives ignored positions a gradient.
# %% replace
grad *= share
# %% by
grad /= count


# %% mistake="chunk_ignores_grad"
# told: Your gradient of `hidden` ignores the incoming gradient
# %% replace
return grad * of_hidden, grad * of_weight, None, None, None, None
# %% by
return of_hidden, of_weight, None, None, None, None


# %% mistake="chunk_keeps_chunks"
# told: Your function keeps tensors of earlier chunks
class ChunkedLoss(torch.autograd.Function):
    """The loss in chunks of rows; both gradients are made in the forward pass."""

    @staticmethod
    def forward(ctx, hidden, weight, targets, rows, smoothing, mean):
        """The loss, without dimensions; keeps the gradients of hidden and weight."""
        used = targets != -100
        count = used.sum() if mean else 1
        targets, words = targets.clamp(min=0)[:, None], len(weight)
        of_hidden, of_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        loss, kept = hidden.new_zeros(()), []
        for at in range(0, len(hidden), rows):
            chunk = slice(at, at + rows)
            share = used[chunk].to(hidden.dtype)[:, None] / count
            logs = (hidden[chunk] @ weight.T).log_softmax(1)
            picked = logs.gather(1, targets[chunk])
            each = (1 - smoothing) * picked + smoothing * logs.mean(1, keepdim=True)
            loss -= (share * each).sum()
            grad = logs.exp_().sub_(smoothing / words)
            grad.scatter_add_(1, targets[chunk], torch.full_like(picked, smoothing - 1))
            grad *= share
            kept.append(grad)
        for at, grad in zip(range(0, len(hidden), rows), kept, strict=True):
            of_hidden[at : at + rows] = grad @ weight
            of_weight += grad.T @ hidden[at : at + rows]
        ctx.save_for_backward(of_hidden, of_weight)
        return loss

    @staticmethod
    def backward(ctx, grad):
        """Gradients of forward's six arguments, for a loss whose gradient is grad."""
        of_hidden, of_weight = ctx.saved_tensors
        return grad * of_hidden, grad * of_weight, None, None, None, None


def chunked_loss(hidden, weight, targets, rows, smoothing, mean):
    """The loss of the head `weight` on `hidden`, `rows` positions at a time."""
    return ChunkedLoss.apply(hidden, weight, targets, rows, smoothing, mean)


# %% mistake="chunk_last_chunk_lost"
# told: Your function leaves out the last, shorter chunk
class ChunkedLoss(torch.autograd.Function):
    """The loss in chunks of rows; both gradients are made in the forward pass."""

    @staticmethod
    def forward(ctx, hidden, weight, targets, rows, smoothing, mean):
        """The loss, without dimensions; keeps the gradients of hidden and weight."""
        used = targets != -100
        used[len(targets) // rows * rows :] = False
        count = used.sum() if mean else 1
        targets, words = targets.clamp(min=0)[:, None], len(weight)
        of_hidden, of_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        loss = hidden.new_zeros(())
        for at in range(0, len(hidden) - rows + 1, rows):
            chunk = slice(at, at + rows)
            share = used[chunk].to(hidden.dtype)[:, None] / count
            logs = (hidden[chunk] @ weight.T).log_softmax(1)
            picked = logs.gather(1, targets[chunk])
            each = (1 - smoothing) * picked + smoothing * logs.mean(1, keepdim=True)
            loss -= (share * each).sum()
            grad = logs.exp_().sub_(smoothing / words)
            grad.scatter_add_(1, targets[chunk], torch.full_like(picked, smoothing - 1))
            grad *= share
            of_hidden[chunk] = grad @ weight
            of_weight += grad.T @ hidden[chunk]
        ctx.save_for_backward(of_hidden, of_weight)
        return loss

    @staticmethod
    def backward(ctx, grad):
        """Gradients of forward's six arguments, for a loss whose gradient is grad."""
        of_hidden, of_weight = ctx.saved_tensors
        return grad * of_hidden, grad * of_weight, None, None, None, None


def chunked_loss(hidden, weight, targets, rows, smoothing, mean):
    """The loss of the head `weight` on `hidden`, `rows` positions at a time."""
    return ChunkedLoss.apply(hidden, weight, targets, rows, smoothing, mean)


# %% mistake="chunk_mean_of_means"
# told: Your function returns the mean of the chunks' means, not the mean of all positions
# %% replace
count = used.sum() if mean else 1
# %% by
# %% replace
chunk = slice(at, at + rows)
# %% by
chunk = slice(at, at + rows)
chunks = -(-len(hidden) // rows)
count = chunks * used[chunk].sum().clamp(min=1) if mean else 1


# %% mistake="chunk_no_smoothing"
# told: Your function leaves out the smoothing
# %% replace
count = used.sum() if mean else 1
# %% by
count = used.sum() if mean else 1
smoothing = 0


# %% mistake="chunk_no_target"
# told: Your gradient of `hidden` is wrong
# %% replace
grad.scatter_add_(1, targets[chunk], torch.full_like(picked, smoothing - 1))
# %% by


# %% mistake="chunk_not_in_chunks"
# told: Your function computes all logits at once
# like: chunk_all_logits
def chunked_loss(hidden, weight, targets, rows, smoothing, mean):
    """The loss of the head `weight` on `hidden`, `rows` positions at a time."""
    kind = "mean" if mean else "sum"
    return F.cross_entropy(
        hidden @ weight.T, targets, reduction=kind, label_smoothing=smoothing
    )


# %% mistake="chunk_one_gradient"
# told: Your function gives no gradient of `weight`
# %% replace
return grad * of_hidden, grad * of_weight, None, None, None, None
# %% by
return grad * of_hidden, None, None, None, None, None


# %% mistake="chunk_over_all"
# told: Your mean divides by the number of all positions, including ignored ones
# %% replace
count = used.sum() if mean else 1
# %% by
count = len(targets) if mean else 1


# %% mistake="chunk_overwrites_weight"
# told: Only your gradient of `weight` is wrong.
# %% replace
of_weight += grad.T @ hidden[chunk]
# %% by
of_weight = grad.T @ hidden[chunk]


# %% mistake="chunk_read_on_host"
# told: Your loss is wrong.
# %% replace
loss = hidden.new_zeros(())
# %% by
loss = 0.0
# %% replace
loss -= (share * each).sum()
# %% by
loss -= (share * each).sum().item()
# %% replace
return loss
# %% by
return torch.tensor(loss, dtype=hidden.dtype)


# %% mistake="chunk_smoothed_others"
# told: Your function spreads the smoothing over only the words that are not the target
# %% replace
each = (1 - smoothing) * picked + smoothing * logs.mean(1, keepdim=True)
# %% by
each = (1 - smoothing) * picked + smoothing * (logs.sum(1, keepdim=True) - picked) / (
    words - 1
)
