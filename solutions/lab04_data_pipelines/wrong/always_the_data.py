# exercise: whose_fault
# told: this loop is not data-bound
# like: balanced_up_to_five_percent.py, workers_not_counted.py


def whose_fault(timeline):
    return "data-bound"
