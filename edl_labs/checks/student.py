"""The student's side as a probe sees it: names of the notebook as attributes, nothing else."""

from __future__ import annotations

from typing import Any


class Missing(Exception):
    """A probe asked for a name that the notebook does not define."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the notebook defines no {name!r}")
        self.missing = name


class Student:
    """Attribute access to a notebook's namespace: `student.finish_times` is the notebook's `finish_times`."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        object.__setattr__(self, "_namespace", namespace)

    def __getattr__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, "_namespace")[name]
        except KeyError:
            raise Missing(name) from None
