# exercise: dynamic_scale
# told: the scale did not grow when it was time


_RightScaler = LossScaler


class LossScaler(_RightScaler):
    def update(self):
        if self.has_overflow:
            self.current *= self.backoff_factor
        self.is_unscaled = self.has_overflow = False
