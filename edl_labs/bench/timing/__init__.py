"""How a call is timed: blocks, warm-up, rounds, arguments, caches, and the clock to do it on."""
