"""Grading a class: the sandbox, the judge outside it, class runs, feedback and exports."""
