# exercise: dynamic_scale
# told: the scale stopped at 1


_RightScaler = LossScaler


class LossScaler(_RightScaler):
    def update(self):
        super().update()
        self.current = max(1.0, self.current)
