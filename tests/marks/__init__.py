"""The mark oracle: points of known submissions to every lab, recorded once and compared with what the grader gives.

`data/LAB.toml` holds the points by submission, exercise and draw of secret cases, right or not: a mark that an attack
earned when it was recorded is in there as it was. A change that is meant is recorded again, with its reason in the
commit: `python -m tests.marks.record LAB`.
"""
