# exercise: score
# told: nobody computes while the first micro-batch is loaded
def train_within(trainer):
    """As in the section before."""
    train_on_many(trainer)
