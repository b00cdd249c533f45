# exercise: petabyte
# told: a size in bits was read as bytes


def transfer_s(size, rate, *, efficiency=1.0):
    def amount(text):
        number, unit = text.removesuffix("/s").split()
        return float(number) * FACTOR[unit.removesuffix("bit").removesuffix("B")]

    bits = 8 if rate.endswith("bit/s") else 1
    return bits * amount(size) / (amount(rate) * efficiency)
