# exercise: merge_statistics
# told: the variance between the parts is missing


def merge_statistics(parts):
    count = sum(part["count"] for part in parts)
    mean = sum(part["count"] * part["mean"] for part in parts) / count
    return mean, sum(part["count"] * part["variance"] for part in parts) / count
