# exercise: dynamic_scale
# told: the gradients were unscaled twice


_RightScaler = LossScaler


class LossScaler(_RightScaler):
    def step(self, optimizer):
        if self.is_unscaled:
            for group in optimizer.param_groups:
                for weight in group["params"]:
                    if weight.grad is not None:
                        weight.grad.div_(self.current)
        super().step(optimizer)
