# exercise: dynamic_scale
# told: its gradients are finite, and only their sum is not


_RightScaler = LossScaler


class LossScaler(_RightScaler):
    def unscale_(self, optimizer):
        super().unscale_(optimizer)
        gradients = [w.grad for group in optimizer.param_groups for w in group["params"] if w.grad is not None]
        self.has_overflow = not all(bool(torch.isfinite(gradient.sum())) for gradient in gradients)
