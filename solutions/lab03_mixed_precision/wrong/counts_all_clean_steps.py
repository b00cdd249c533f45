# exercise: dynamic_scale
# told: the scale grew too early


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
