# exercise: petabyte
# told: the line code was left out


def transfer_s(size, rate, *, efficiency=1.0):
    def amount(text):
        number, unit = text.removesuffix("/s").split()
        return (1 if unit.endswith("bit") else 8) * float(number) * FACTOR[unit.removesuffix("bit").removesuffix("B")]

    return amount(size) / amount(rate)
