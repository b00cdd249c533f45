# exercise: dynamic_scale
# told: infinity or NaN reached the weights


_RightScaler = LossScaler


class LossScaler(_RightScaler):
    def step(self, optimizer):
        if not self.is_unscaled:
            self.unscale_(optimizer)
        optimizer.step()
