# exercise: dynamic_scale
# told: the scale grew beyond max_scale


_RightScaler = LossScaler


def LossScaler(*, max_scale=math.inf, **settings):
    return _RightScaler(**settings)
