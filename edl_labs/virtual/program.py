"""Recorded programs of virtual machines: checked operation by operation, done again, their readings compared.

Nothing in a program is trusted: it may come from a process that somebody tampered with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from edl_labs.errors import EdlError
from edl_labs.virtual.errors import ReplayDisagreement, ReplayError, shown

# A program of this many operations replays in seconds, which a judge waits for.
MAX_REPLAYED = 300_000
Entry = dict[str, Any]


class Reading(NamedTuple):
    """One reading of a program: what it returned, and what was true of the machine at that moment.

    `host_s` is the exact virtual time; `drained` says that the device had finished all that was issued; `launches` is
    the number of kernels issued before.
    """

    index: int  # type: ignore[assignment]  # nobody looks for a value in a reading
    op: str
    value: Any
    host_s: float
    drained: bool
    launches: int


@dataclass(frozen=True)
class ProgramForm:
    """How the programs of one kind of machine are read: who records them, and the table of their operations."""

    recorder: str
    program: str
    operations: Mapping[str, Any]
    limit: str = "a replay has a limit"

    def name_of(self, index: int, entry: object) -> str:
        """The name of an operation; ReplayError where it has none of the table."""
        if type(entry) is not dict:
            raise self.malformed(index, f"is {shown(entry)}, not a dict with its fields")
        name = entry.get("op")
        if type(name) is not str or name not in self.operations:
            raise self.malformed(index, f"has the name {shown(name)}, which no operation has")
        return name

    def entries(
        self, program: object, check: Callable[[int, object], Entry], charge: Callable[[Entry], int], *, at_most: int
    ) -> Iterator[tuple[int, Entry]]:
        """The operations of a program with their numbers, each checked in its turn; ReplayError for anything else."""
        left = at_most
        for index, raw in enumerate(self.listed(program)):
            entry = check(index, raw)
            left -= charge(entry)
            if left < 0:
                raise self.too_many(at_most)
            yield index, entry

    def listed(self, program: object) -> list[Any]:
        """A program that is a list, of whatever; ReplayError for anything else."""
        if type(program) is list:
            return program
        raise ReplayError(
            f"a program is a list of operations, not a {type(program).__name__}",
            why=f"it was not recorded by a {self.recorder}",
            next=f"return {self.program}",
        )

    def too_many(self, at_most: int) -> ReplayError:
        """The error for a program that is longer than anybody should wait for."""
        return ReplayError(
            f"the program has more than {at_most:,} operations", why=self.limit, next="measure with fewer calls"
        )

    def done_again(self, play: Callable[[Entry], Any], index: int, entry: Entry) -> Any:
        """What `play` returns for an operation; ReplayError for whatever keeps the machine from doing it."""
        try:
            return play(entry)
        except ReplayError:
            raise
        except EdlError as error:
            what = f"operation {index} of the program cannot be: {error.what}"
            raise ReplayError(what, why=error.why, next=error.next) from error
        except LookupError:
            problem = f"is a {entry['op']} of something that the program did not make"
            raise self.malformed(index, problem) from None

    def malformed(self, index: int, problem: str) -> ReplayError:
        """The error for an entry that is not an operation."""
        return ReplayError(
            f"operation {index} of the program {problem}",
            why=f"only what a {self.recorder} recorded can be replayed",
            next=f"return {self.program} as it is, without editing it",
        )


def require_same(index: int, entry: Mapping[str, Any], value: Any) -> None:
    """ReplayDisagreement unless what the operation recorded is the replayed value, of the same type."""
    recorded = entry["value"]
    if type(recorded) is not type(value) or recorded != value:
        raise ReplayDisagreement(index=index, operation=entry["op"], recorded=recorded, replayed=value)
