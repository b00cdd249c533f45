# exercise: whose_fault
# told: this loop is not data-bound
# like: workers_not_counted.py


def whose_fault(timeline):
    return "data-bound"
