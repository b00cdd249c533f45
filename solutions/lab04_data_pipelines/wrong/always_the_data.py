# exercise: whose_fault
# told: this loop is not data-bound


def whose_fault(timeline):
    return "data-bound"
