# exercise: name_the_pattern
# told: this step is not bound by
# like: spans_added_up.py


def name_the_pattern(spans):
    charged = charges(spans)
    return max(charged, key=charged.get)[0]
