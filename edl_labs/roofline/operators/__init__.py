"""What torch runs, operator by operator: recorded on real or fake tensors, and what each one computes and moves."""
