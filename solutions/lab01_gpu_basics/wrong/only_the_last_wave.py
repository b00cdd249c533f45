# exercise: wave_quantization
# told: that is how full the last wave is


def wave_report(tiles, *, sm_count):
    left = tiles % sm_count or sm_count
    return (tiles - left) // sm_count + 1, left / sm_count, sm_count - left
