# exercise: petabyte
# told: a rate in bits was read as bytes


def transfer_s(size, rate, *, efficiency=1.0):
    def amount(text):
        number, unit = text.removesuffix("/s").split()
        return float(number) * FACTOR[unit.removesuffix("bit").removesuffix("B")]

    return amount(size) / amount(rate) / efficiency
