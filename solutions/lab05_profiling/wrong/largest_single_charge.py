# exercise: name_the_pattern
# told: the pattern of the largest single charge was named


def name_the_pattern(spans):
    charged = charges(spans)
    return max(charged, key=charged.get)[0]
