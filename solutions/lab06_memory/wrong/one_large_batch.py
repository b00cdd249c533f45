# exercise: mend_accumulation
# told: several micro-batches went through the model at once


def train_accumulated(model, batches, optimizer, *, window):
    losses = []
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        inputs, labels = torch.cat([one for one, _ in part]), torch.cat([one for _, one in part])
        optimizer.zero_grad()
        loss = sum_of_losses(model(inputs), labels) / int((labels != IGNORED).sum())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
