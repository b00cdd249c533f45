"""A small data set that misbehaves, for the tests of loaders."""

from __future__ import annotations

from typing import Any


class Odd:
    """A data set in which sample 13 does something bad."""

    def __init__(self, deed: Any) -> None:
        self.deed = deed

    def __len__(self) -> int:
        return 20

    def __getitem__(self, sample: int) -> int:
        if sample == 13:
            self.deed()
        return sample
