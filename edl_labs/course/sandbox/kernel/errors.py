"""What a student's kernel can do to a request: break a rule, or die."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edl_labs.errors import EdlError

if TYPE_CHECKING:
    from edl_labs.course.sandbox.kernel.cell_outputs import CellResult


class Violation(EdlError):
    """A request broke a rule. `kind` names it; while `alive`, the kernel can be asked again.

    Kinds: "deadline", "messages", "bytes" (`alive` when an interrupt ended the cell), "protocol" (the kernel is ended),
    "no answer", "two answers", "forged answer", "large answer" (the kernel lives on).
    `result` is what the cell had put out by then.
    """

    def __init__(self, kind: str, *, why: str = "", alive: bool = False, result: CellResult | None = None) -> None:
        super().__init__(f"the kernel broke a rule: {kind}", why=why)
        self.kind, self.alive, self.result = kind, alive, result


class KernelDied(EdlError):
    """The kernel is gone. `reason` says how: "memory", "files", "processes", "cpu", "signal 11", "exit 0",
    "sandbox ended"."""

    def __init__(self, reason: str, *, result: CellResult | None = None) -> None:
        super().__init__(f"the kernel died: {reason}")
        self.reason, self.result = reason, result
