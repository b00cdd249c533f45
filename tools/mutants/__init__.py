"""Small mistakes in each solution, of which the checks must notice nearly all: `python -m tools.mutants LAB`."""
