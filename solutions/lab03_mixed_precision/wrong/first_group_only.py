# exercise: dynamic_scale
# told: in the second parameter group only


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
