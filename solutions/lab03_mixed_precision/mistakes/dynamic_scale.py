# %% mistake="counts_all_clean_steps"
# told: your scale grew too early
_RightScaler = LossScaler


class LossScaler(_RightScaler):
    clean = 0

    def update(self):
        if self.has_overflow:
            self.current *= self.backoff_factor
        else:
            self.clean += 1
            if self.clean % self.growth_interval == 0:
                self.current *= self.growth_factor
        self.is_unscaled = self.has_overflow = False


# %% mistake="divides_twice"
# told: your scaler unscales the gradients twice
_RightScaler = LossScaler


class LossScaler(_RightScaler):
    def step(self, optimizer):
        if self.is_unscaled:
            for group in optimizer.param_groups:
                for weight in group["params"]:
                    if weight.grad is not None:
                        weight.grad.div_(self.current)
        super().step(optimizer)


# %% mistake="finite_sums"
# told: its gradients are finite, and only their sum is not
_RightScaler = LossScaler


class LossScaler(_RightScaler):
    def unscale_(self, optimizer):
        super().unscale_(optimizer)
        gradients = [
            w.grad
            for group in optimizer.param_groups
            for w in group["params"]
            if w.grad is not None
        ]
        self.has_overflow = not all(
            bool(torch.isfinite(gradient.sum())) for gradient in gradients
        )


# %% mistake="first_group_only"
# told: but only in the second parameter group
_RightScaler = LossScaler


class LossScaler(_RightScaler):
    def unscale_(self, optimizer):
        if self.is_unscaled:
            raise RuntimeError("the gradients are unscaled already")
        self.is_unscaled = True
        for weight in optimizer.param_groups[0]["params"]:
            if weight.grad is not None:
                weight.grad.div_(self.current)
                self.has_overflow |= not bool(torch.isfinite(weight.grad).all())


# %% mistake="grows_without_end"
# told: your scale grew beyond max_scale
_RightScaler = LossScaler


def LossScaler(*, max_scale=math.inf, **settings):
    return _RightScaler(**settings)


# %% mistake="last_gradient_decides"
# told: reach the weights
# like: takes_the_bad_step
_RightScaler = LossScaler


class LossScaler(_RightScaler):
    def unscale_(self, optimizer):
        super().unscale_(optimizer)
        gradients = [
            w.grad
            for group in optimizer.param_groups
            for w in group["params"]
            if w.grad is not None
        ]
        self.has_overflow = not bool(torch.isfinite(gradients[-1]).all())


# %% mistake="never_below_one"
# told: your scale does not fall below 1
_RightScaler = LossScaler


class LossScaler(_RightScaler):
    def update(self):
        super().update()
        self.current = max(1.0, self.current)


# %% mistake="never_grows"
# told: your scale did not grow when it should have
_RightScaler = LossScaler


class LossScaler(_RightScaler):
    def update(self):
        if self.has_overflow:
            self.current *= self.backoff_factor
        self.is_unscaled = self.has_overflow = False


# %% mistake="scales_a_number"
# told: cuts the loss off from its graph
_RightScaler = LossScaler


class LossScaler(_RightScaler):
    def scale(self, loss):
        return torch.tensor(loss.item() * self.current)


# %% mistake="takes_the_bad_step"
# told: your scaler let infinity or NaN reach the weights
_RightScaler = LossScaler


class LossScaler(_RightScaler):
    def step(self, optimizer):
        if not self.is_unscaled:
            self.unscale_(optimizer)
        optimizer.step()
