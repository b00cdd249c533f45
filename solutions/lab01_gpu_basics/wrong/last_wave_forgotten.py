# exercise: wave_quantization
# told: the last wave was forgotten


def wave_report(tiles, *, sm_count):
    waves = max(1, tiles // sm_count)
    return waves, min(1.0, tiles / (waves * sm_count)), max(0, waves * sm_count - tiles)
