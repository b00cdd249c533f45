# exercise: wave_quantization
# told: a full wave was offered more tiles


def wave_report(tiles, *, sm_count, rightly=wave_report):  # noqa: F821
    waves, efficiency, _ = rightly(tiles, sm_count=sm_count)
    return waves, efficiency, sm_count - tiles % sm_count
