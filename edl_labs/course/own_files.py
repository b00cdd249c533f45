"""The files of a folder, without the temporary files of notebooks, kernels and file managers."""

from __future__ import annotations

from pathlib import Path

from edl_labs.checks.progress_store import STATE_DIR

LEFT_BEHIND = (STATE_DIR, ".ipynb_checkpoints", "__pycache__", ".DS_Store")


def own_files(folder: Path) -> list[Path]:
    """Every file below `folder` that nothing left there in passing, sorted; none where there is no such folder.

    Released, published, counted and compared are these alone: one press of a button in a notebook changes no release.
    """
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and not was_left_behind(path, folder)]


def was_left_behind(path: Path, folder: Path) -> bool:
    """Whether a file below `folder` was left there in passing, as far as its name tells."""
    return any(part in LEFT_BEHIND for part in path.relative_to(folder).parts)
