# exercise: name_the_pattern
# told: this step is not bound by


def name_the_pattern(spans):
    charged = charges(spans)
    return max(charged, key=charged.get)[0]
