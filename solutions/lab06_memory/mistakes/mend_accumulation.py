# %% mistake="clears_after_only"
# told: your code does not clear gradients from before the first window
def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        count = sum(int((labels != IGNORED).sum()) for _, labels in part)
        total = 0.0
        for inputs, labels in part:
            loss = sum_of_losses(model(inputs), labels) / count
            loss.backward()
            total += loss.item()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(total)
    return losses


# %% mistake="clears_before_the_step"
# told: your step does not change the weights
def train_accumulated(model, batches, optimizer, *, window):
    losses, total = [], 0.0
    for number, (inputs, labels) in enumerate(batches):
        loss = (
            sum_of_losses(model(inputs), labels)
            / max(1, int((labels != IGNORED).sum()))
            / window
        )
        loss.backward()
        total += loss.item()
        if (number + 1) % window == 0 or number + 1 == len(batches):
            optimizer.zero_grad()
            optimizer.step()
            losses.append(total)
            total = 0.0
    return losses


# %% mistake="graphs_of_a_whole_window"
# told: your code holds the graphs of several micro-batches at once
def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        counted = sum(int((labels != IGNORED).sum()) for _, labels in part)
        optimizer.zero_grad()
        loss = (
            sum(sum_of_losses(model(inputs), labels) for inputs, labels in part)
            / counted
        )
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% mistake="last_window_by_n"
# told: your code divides a shorter window as if it were a full one
def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for start in range(0, len(batches), window):
        optimizer.zero_grad()
        total = 0.0
        for inputs, labels in batches[start : start + window]:
            loss = (
                sum_of_losses(model(inputs), labels)
                / int((labels != IGNORED).sum())
                / window
            )
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses


# %% mistake="mean_of_means"
# told: your code gives every micro-batch the same weight, however many of its positions count
# %% replace
counted = sum(int((labels != IGNORED).sum()) for _, labels in part)
# %% by
# %% replace
loss = sum_of_losses(model(inputs), labels) / counted
# %% by
loss = (
    sum_of_losses(model(inputs), labels)
    / max(1, int((labels != IGNORED).sum()))
    / len(part)
)


# %% mistake="means_added_up"
# told: your code adds up the means of a window's micro-batches
def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for start in range(0, len(batches), window):
        optimizer.zero_grad()
        found = []
        for inputs, labels in batches[start : start + window]:
            loss = sum_of_losses(model(inputs), labels) / max(
                1, int((labels != IGNORED).sum())
            )
            loss.backward()
            found.append(loss.item())
        optimizer.step()
        losses.append(sum(found) / len(found))
    return losses


# %% mistake="nan_of_nothing"
# told: your code computes a mean over no positions at all
def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        counts = [(labels != IGNORED).sum() for _, labels in part]
        optimizer.zero_grad()
        total = 0.0
        for (inputs, labels), count in zip(part, counts, strict=True):
            mean = sum_of_losses(model(inputs), labels) / count
            loss = mean * count / sum(counts)
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses


# %% mistake="never_clears"
# told: your code does not clear the gradients of the previous window
def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    optimizer.zero_grad()
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        count = sum(int((labels != IGNORED).sum()) for _, labels in part)
        total = 0.0
        for inputs, labels in part:
            loss = sum_of_losses(model(inputs), labels) / count
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses


# %% mistake="one_large_batch"
# told: your code runs several micro-batches through the model at once
def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        inputs, labels = (
            torch.cat([one for one, _ in part]),
            torch.cat([one for _, one in part]),
        )
        optimizer.zero_grad()
        loss = sum_of_losses(model(inputs), labels) / int((labels != IGNORED).sum())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% mistake="padding_in_the_divisor"
# told: your divisor includes positions that are ignored
# %% replace
counted = sum(int((labels != IGNORED).sum()) for _, labels in part)
# %% by
count = sum(len(labels) for _, labels in part)
# %% replace
loss = sum_of_losses(model(inputs), labels) / counted
# %% by
loss = sum_of_losses(model(inputs), labels) / count


# %% mistake="reports_the_last_loss"
# told: a reported loss is not its window's mean
def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        count = sum(int((labels != IGNORED).sum()) for _, labels in part)
        optimizer.zero_grad()
        for inputs, labels in part:
            loss = sum_of_losses(model(inputs), labels) / count
            loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% mistake="steps_each_time"
# told: your code steps the optimizer after every micro-batch
def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for inputs, labels in batches:
        optimizer.zero_grad()
        loss = sum_of_losses(model(inputs), labels) / max(
            1, int((labels != IGNORED).sum())
        )
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% mistake="tail_is_lost"
# told: your code makes no step after the last micro-batches
def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        count = sum(int((labels != IGNORED).sum()) for _, labels in part)
        optimizer.zero_grad()
        total = 0.0
        for inputs, labels in part:
            loss = sum_of_losses(model(inputs), labels) / count
            loss.backward()
            total += loss.item()
        if len(part) == window:
            optimizer.step()
            losses.append(total)
    return losses
