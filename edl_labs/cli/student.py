"""Commands of those who work on labs."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
