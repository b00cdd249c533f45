# exercise: batcher
# told: a decision rests on what the server cannot know
import random


def next_batch(now_s, queue, service, limit_s):
    """Any of them."""
    lots = random.SystemRandom()
    return [one.number for one in lots.sample(queue, min(len(queue), 3))]
