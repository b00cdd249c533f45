"""What a kernel does that Triton or the memory would not allow, with the line of its source."""

from __future__ import annotations

from edl_labs.errors import EdlError


class TileError(EdlError):
    """A kernel that cannot be compiled, or an access that is refused before it happens.

    `line` is the line of the source, 0 where there is none. `kind` is "source", "read", "write", "undefined" or
    "budget". A refused access has `tensor`, `element`, `size` and `program` (its ids along the three axes of the grid).
    """

    def __init__(
        self,
        what: str,
        *,
        why: str = "",
        next: str = "",
        line: int = 0,
        kind: str = "source",
        tensor: str = "",
        element: int = 0,
        size: int = 0,
        program: tuple[int, ...] = (),
    ) -> None:
        self.plain, self.line, self.kind, self.tensor = what, line, kind, tensor
        self.element, self.size, self.program = element, size, program
        super().__init__(f"Line {line}: {what}" if line else what, why=why, next=next)

    def at(self, line: int) -> TileError:
        """The same error at a line of the source, where it has none yet."""
        if self.line or not line:
            return self
        parts = {key: getattr(self, key) for key in ("why", "next", "kind", "tensor", "element", "size", "program")}
        return TileError(self.plain, line=line, **parts)


def refuse(what: str, *, why: str = "", next: str = "", kind: str = "source") -> TileError:
    """The error for a construct; `at` adds its line."""
    return TileError(what, why=why, next=next, kind=kind)
