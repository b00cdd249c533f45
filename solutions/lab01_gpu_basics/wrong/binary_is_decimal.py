# exercise: petabyte
# told: a binary prefix was read as a decimal one


def transfer_s(size, rate, *, efficiency=1.0):
    def amount(text):
        number, unit = text.removesuffix("/s").split()
        bits = 1 if unit.endswith("bit") else 8
        return (
            bits * float(number) * FACTOR[unit.removesuffix("bit").removesuffix("B").replace("i", "").replace("K", "k")]
        )

    return amount(size) / amount(rate) / efficiency
