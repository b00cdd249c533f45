# exercise: dynamic_scale
# told: cuts the loss off from its graph


_RightScaler = LossScaler


class LossScaler(_RightScaler):
    def scale(self, loss):
        return torch.tensor(loss.item() * self.current)
