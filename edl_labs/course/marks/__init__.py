"""A term around grading: hand-in, deadlines, feedback, marks out, grading again, and the class at a glance."""
