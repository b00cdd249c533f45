# exercise: bug_hunt
# told: train_scheduled still moves the schedule when the step was skipped


train_scheduled = faulty_scheduled
