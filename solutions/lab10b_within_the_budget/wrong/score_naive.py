# exercise: score
# told: the run is too slow for its budget
def train_within(trainer):
    """What works, and nothing more."""
    naive(trainer)
