# exercise: bug_hunt
# told: train_clipped still clips gradients that are scaled


train_clipped, train_logged, train_accumulated = faulty_clipped, faulty_logged, faulty_accumulated
train_scheduled, train_static = faulty_scheduled, faulty_static
