# exercise: diagnose
# told: this layer is not limited by memory
# like: never_counts_blocks.py


def diagnose(layer, machine):
    return "memory"
