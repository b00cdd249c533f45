# exercise: merge_statistics
# told: the digits of the variance cancel


def merge_statistics(parts):
    count = sum(part["count"] for part in parts)
    mean = sum(part["count"] * part["mean"] for part in parts) / count
    squares = sum(part["count"] * (part["variance"] + part["mean"] ** 2) for part in parts) / count
    return mean, squares - mean**2
