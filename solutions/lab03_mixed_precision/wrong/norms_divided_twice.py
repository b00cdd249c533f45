# exercise: bug_hunt
# told: train_logged still divides by the scale twice


train_logged = faulty_logged
