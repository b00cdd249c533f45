"""What only maintainers run, from the root of the repository: `python -m tools.NAME`."""
