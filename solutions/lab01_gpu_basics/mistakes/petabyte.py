# %% mistake="binary_is_decimal"
# told: your code reads a binary prefix as a decimal one
def transfer_s(size, rate, *, efficiency=1.0):
    def amount(text):
        number, unit = text.removesuffix("/s").split()
        bits = 1 if unit.endswith("bit") else 8
        return (
            bits
            * float(number)
            * FACTOR[
                unit.removesuffix("bit")
                .removesuffix("B")
                .replace("i", "")
                .replace("K", "k")
            ]
        )

    return amount(size) / amount(rate) / efficiency


# %% mistake="bits_read_as_bytes"
# told: your code reads a rate in bits as bytes
def transfer_s(size, rate, *, efficiency=1.0):
    def amount(text):
        number, unit = text.removesuffix("/s").split()
        return float(number) * FACTOR[unit.removesuffix("bit").removesuffix("B")]

    return amount(size) / amount(rate) / efficiency


# %% mistake="line_code_left_out"
# told: your code does not apply efficiency
def transfer_s(size, rate, *, efficiency=1.0):
    def amount(text):
        number, unit = text.removesuffix("/s").split()
        return (
            (1 if unit.endswith("bit") else 8)
            * float(number)
            * FACTOR[unit.removesuffix("bit").removesuffix("B")]
        )

    return amount(size) / amount(rate)


# %% mistake="milliseconds_of_a_transfer"
# told: your times are in milliseconds
def transfer_s(size, rate, *, efficiency=1.0):
    def in_bytes(text):
        number, unit = text.removesuffix("/s").split()
        bits = 8 if unit.endswith("bit") else 1
        return float(number) * FACTOR[unit.removesuffix("bit").removesuffix("B")] / bits

    return 1e3 * in_bytes(size) / (in_bytes(rate) * efficiency)


# %% mistake="only_bits_are_coded"
# told: your code does not apply efficiency to a rate in bytes
def transfer_s(size, rate, *, efficiency=1.0):
    def amount(text):
        number, unit = text.removesuffix("/s").split()
        return (
            (1 if unit.endswith("bit") else 8)
            * float(number)
            * FACTOR[unit.removesuffix("bit").removesuffix("B")]
        )

    return amount(size) / amount(rate) / (efficiency if "bit" in rate else 1.0)


# %% mistake="sizes_are_bytes"
# told: your code reads a size in bits as bytes
def transfer_s(size, rate, *, efficiency=1.0):
    def amount(text):
        number, unit = text.removesuffix("/s").split()
        return float(number) * FACTOR[unit.removesuffix("bit").removesuffix("B")]

    bits = 8 if rate.endswith("bit/s") else 1
    return bits * amount(size) / (amount(rate) * efficiency)
