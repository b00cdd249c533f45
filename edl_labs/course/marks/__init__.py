"""Everything around grading: submission, deadlines, feedback, export of marks, regrading, and class reports."""
