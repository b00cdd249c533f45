# %% mistake="mend_accuracy_every_fourth"
# told: Your number of accuracies is wrong
# like: mend_no_accuracy
# %% replace
if len(self.losses) % 3 == 0:
    self.accuracies.append((logits.argmax(1) == following).float().mean())
# %% by
if len(self.losses) % 4 == 3:
    self.accuracies.append((logits.argmax(1) == following).float().mean())


# %% mistake="mend_accuracy_of_new_weights"
# told: is wrong
# %% replace
self.accuracies.append((logits.argmax(1) == following).float().mean())
# %% by
for block in self.model.blocks:
    x = block(x + self.positions, self.attend)
logits = self.model.head(x).flatten(0, 1)
self.accuracies.append((logits.argmax(1) == following).float().mean())


# %% mistake="mend_adds_gradients"
# told: Your loss is wrong after
# like: mend_no_clipping
# %% replace
self.optimizer.zero_grad()
# %% by


# %% mistake="mend_clips_too_late"
# told: Your loss is wrong after
# like: mend_no_clipping
# %% replace
loss.backward()
# %% by
loss.backward()
self.optimizer.step()
# %% replace
self.optimizer.step()
# %% by


# %% mistake="mend_converts"
# told: Your step converts tensors to another dtype
# %% replace
self.positions = model.positions.to(model.head.weight.dtype)
# %% by
# %% replace
x = block(x + self.positions, self.attend)
# %% by
x = block(x + self.model.positions.to(x.dtype), self.attend)


# %% mistake="mend_keeps_mask"
# told: Your step stores a number for each pair of positions
# %% replace
mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
# %% by
scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
mask = torch.ones(q.shape[2], q.shape[2]).tril().bool()
mixed = scores.masked_fill(~mask, -torch.inf).softmax(3) @ v


# %% mistake="mend_metric_always"
# told: Your code computes the accuracy in every step
# %% replace
if len(self.losses) % 3 == 0:
    self.accuracies.append((logits.argmax(1) == following).float().mean())
# %% by
accuracy = (logits.argmax(1) == following).float().mean()
if len(self.losses) % 3 == 0:
    self.accuracies.append(accuracy)


# %% mistake="mend_no_accuracy"
# told: Your number of accuracies is wrong
# %% replace
if len(self.losses) % 3 == 0:
    self.accuracies.append((logits.argmax(1) == following).float().mean())
# %% by


# %% mistake="mend_no_clipping"
# told: Your loss is wrong after
# %% replace
nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
# %% by


# %% mistake="mend_no_loss"
# told: Your loss is wrong in step 0, before any weight has changed
# like: mend_not_causal
# %% replace
self.losses.append(loss.detach())
# %% by
self.losses.append(0.0)


# %% mistake="mend_no_positions"
# told: Your loss is wrong in step 0, before any weight has changed
# like: mend_not_causal
# %% replace
x = block(x + self.positions, self.attend)
# %% by
x = block(x, self.attend)


# %% mistake="mend_no_step"
# told: Your loss is wrong after
# like: mend_no_clipping
# %% replace
self.optimizer.step()
# %% by


# %% mistake="mend_not_causal"
# told: Your loss is wrong in step 0, before any weight has changed
# %% replace
mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
# %% by
mixed = F.scaled_dot_product_attention(q, k, v)


# %% mistake="mend_nothing"
# told: In your step, the host reads a value.
# like: mend_reads_loss
# %% replace
self.optimizer = torch.optim.AdamW(model.parameters(), 0.01, fused=True)
self.positions = model.positions.to(model.head.weight.dtype)
# %% by
self.optimizer = torch.optim.AdamW(model.parameters(), 0.01, foreach=False)
# %% replace
mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
# %% by
scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
mask = torch.ones(q.shape[2], q.shape[2]).tril().bool()
mixed = scores.masked_fill(~mask, -torch.inf).softmax(3) @ v
# %% replace
x = block(x + self.positions, self.attend)
# %% by
x = block(x + self.model.positions.to(x.dtype), self.attend)
# %% replace
if len(self.losses) % 3 == 0:
    self.accuracies.append((logits.argmax(1) == following).float().mean())
self.losses.append(loss.detach())
# %% by
accuracy = (logits.argmax(1) == following).float().mean().item()
if len(self.losses) % 3 == 0:
    self.accuracies.append(accuracy)
self.losses.append(loss.item())


# %% mistake="mend_one_by_one"
# told: Your optimizer updates each parameter separately.
# %% replace
self.optimizer = torch.optim.AdamW(model.parameters(), 0.01, fused=True)
# %% by
self.optimizer = torch.optim.AdamW(model.parameters(), 0.01)


# %% mistake="mend_other_rate"
# told: Your loss is wrong after
# like: mend_no_clipping
# %% replace
self.optimizer = torch.optim.AdamW(model.parameters(), 0.01, fused=True)
# %% by
self.optimizer = torch.optim.AdamW(model.parameters(), 0.001, fused=True)


# %% mistake="mend_reads_loss"
# told: In your step, the host reads a value.
# %% replace
self.losses.append(loss.detach())
# %% by
self.losses.append(loss.item())


# %% mistake="mend_stops_at_nan"
# told: In your step, the host reads a value.
# like: mend_reads_loss
# %% replace
loss = F.cross_entropy(logits, following)
# %% by
loss = F.cross_entropy(logits, following)
if loss.isnan():
    return
