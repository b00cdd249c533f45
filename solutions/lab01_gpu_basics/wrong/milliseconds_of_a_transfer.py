# exercise: petabyte
# told: milliseconds came back


def transfer_s(size, rate, *, efficiency=1.0):
    def in_bytes(text):
        number, unit = text.removesuffix("/s").split()
        bits = 8 if unit.endswith("bit") else 1
        return float(number) * FACTOR[unit.removesuffix("bit").removesuffix("B")] / bits

    return 1e3 * in_bytes(size) / (in_bytes(rate) * efficiency)
