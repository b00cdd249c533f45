# exercise: merge_statistics
# told: parts of different sizes weigh the same in the mean


def merge_statistics(parts):
    mean = sum(part["mean"] for part in parts) / len(parts)
    return mean, sum(part["variance"] + (part["mean"] - mean) ** 2 for part in parts) / len(parts)
