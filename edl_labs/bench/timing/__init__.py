"""How a call is timed: the clock, blocks and their arguments, warm-up, rounds, caches."""
