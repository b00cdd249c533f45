"""Tools for maintainers. Run them from the root of the repository: `python -m tools.NAME`."""
