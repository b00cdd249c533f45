"""Recorded programs of virtual machines: one table of operations a machine; checked, charged, played, compared here.

Nothing in a program is trusted: it may come from a process that somebody tampered with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, cast

from edl_labs.errors import EdlError
from edl_labs.virtual.errors import ReplayDisagreement, ReplayError, shown
from edl_labs.virtual.quantities import MAX_NAME, MAX_SECONDS, is_number

# A program of this many operations replays in seconds, which a judge waits for.
MAX_REPLAYED = 300_000
Entry = dict[str, Any]
Check = Callable[[object], bool]


def number(highest: float) -> Check:
    """Numbers from 0 to `highest`."""
    return lambda value: is_number(value, 0, highest)


def whole(highest: int, lowest: int = 0) -> Check:
    """Whole numbers from `lowest` to `highest`."""
    return lambda value: type(value) is int and lowest <= value <= highest


def one_of(*names: str) -> Check:
    """One of these texts."""
    return lambda value: type(value) is str and value in names


def text(value: object) -> bool:
    """A name: a word or two."""
    return type(value) is str and 0 < len(value) <= MAX_NAME


def flag(value: object) -> bool:
    """Yes or no."""
    return type(value) is bool


def anything(value: object) -> bool:
    """Any value: the machine checks it when it plays the operation, or it only has to equal the replayed value."""
    return True


# Where the value of a field comes from. A program may choose what is free; a judge compares what the case fixes with
# the case, and what follows from earlier operations with its own replay.
FREE, FROM_CASE, FOLLOWS = "free", "from the case", "follows"


@dataclass(frozen=True)
class Field:
    """The check of a field, and the source of its value.

    `regions` says that it holds a part of an object, [number, start, stop], or a list of such parts.
    """

    check: Check
    source: str = FREE
    regions: bool = False

    def __call__(self, value: object) -> bool:
        return self.check(value)


def from_case(checks: Mapping[str, Check], *, regions: bool = False) -> dict[str, Check]:
    """These fields, whose values the case fixes."""
    return {name: Field(check, FROM_CASE, regions) for name, check in checks.items()}


INDEX, TIMES, SECONDS = whole(10**9), whole(10**9, 1), number(MAX_SECONDS)
READING = {"value": Field(anything, FOLLOWS)}


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


def _unplayed(machine: Any, entry: Entry) -> Any:
    raise NotImplementedError(entry["op"])


@dataclass(frozen=True)
class OperationKind:
    """One kind of operation: its fields with a check each, and what a machine does with it.

    `play(machine, entry)` repeats it and returns what the call returned; a machine that plays whole programs at once
    has none. `misfit(machine, entry)` says why a well-formed entry does not fit this machine or what came before it
    ("" where it fits). `charge(machine, entry)` is the number of operations that it counts for against a replay's
    limit. `compares(entry)` tells whether it recorded a value, which has to equal the replayed one. `makes` is the
    field with the number of the object that it makes, `holds` the field with the operations that it contains.
    """

    required: Mapping[str, Check] = field(default_factory=dict)
    play: Callable[[Any, Entry], Any] = _unplayed
    optional: Mapping[str, Check] = field(default_factory=dict)
    misfit: Callable[[Any, Entry], str] = lambda machine, entry: ""
    charge: Callable[[Any, Entry], int] = lambda machine, entry: 1
    compares: Callable[[Entry], bool] = lambda entry: "value" in entry
    makes: str = ""
    holds: str = ""

    @cached_property
    def checks(self) -> dict[str, Check]:
        """The check of each field."""
        return {**self.required, **self.optional}

    def unknown(self, entry: Mapping[Any, Any]) -> list[Any]:
        """Keys that are not fields of this kind."""
        return [key for key in entry if type(key) is not str or (key != "op" and key not in self.checks)]

    def missing(self, entry: Mapping[str, Any]) -> list[str]:
        """Fields that it must have but does not have."""
        return [name for name in self.required if name not in entry]

    def wrong(self, entry: Mapping[str, Any]) -> list[str]:
        """Fields whose value is not valid; `entry` has no unknown ones."""
        return [name for name, value in entry.items() if name != "op" and not self.checks[name](value)]


@dataclass(frozen=True)
class Program:
    """The programs of one kind of machine: who records them, where a student finds one, the table of operations."""

    recorder: str
    source: str
    operations: Mapping[str, OperationKind]
    limit: str = "the length of a replay is limited"

    def replayed(
        self, machine: Any, program: object, *, at_most: int = MAX_REPLAYED
    ) -> Iterator[tuple[int, Entry, Any]]:
        """The operations of a program with their numbers, each repeated on `machine`, with what it returned.

        ReplayDisagreement where a recorded value is not the replayed one, ReplayError for anything that is no program
        of this machine or longer than `at_most`: never anything else, whatever it is.
        """
        left = at_most
        for index, raw in enumerate(self.listed(program)):
            entry = self.checked(index, raw)
            kind = self.operations[entry["op"]]
            if misfit := kind.misfit(machine, entry):
                raise self.malformed(index, f"is a {entry['op']} {misfit}")
            left -= kind.charge(machine, entry)
            if left < 0:
                raise self.too_many(at_most)
            value = self.done_again(partial(kind.play, machine), index, entry)
            if kind.compares(entry):
                require_same(index, entry, value)
            yield index, entry, value

    def checked(self, index: int, entry: Any) -> Entry:
        """An entry that has the form of its operation; ReplayError for anything else."""
        if type(entry) is not dict:
            raise self.malformed(index, f"is {shown(entry)}, not a dict with the fields of an operation")
        name = entry.get("op")
        if type(name) is not str or name not in self.operations:
            raise self.malformed(index, f"has an unknown name, {shown(name)}")
        kind = self.operations[name]
        for key in kind.unknown(entry):
            raise self.malformed(index, f"is a {name} with an unknown field, {shown(key)}")
        for key in kind.wrong(entry):
            raise self.malformed(index, f"is a {name} with an invalid {key}, {shown(entry[key])}")
        for key in kind.missing(entry):
            raise self.malformed(index, f"is a {name} that lacks the field {key}")
        return cast(Entry, entry)

    def listed(self, program: object) -> list[Any]:
        """A program that is a list, with any contents; ReplayError for anything else."""
        if type(program) is list:
            return program
        raise ReplayError(
            f"a program must be a list of operations, got a {type(program).__name__}",
            why=f"it was not recorded by a {self.recorder}",
            next=f"return {self.source}",
        )

    def too_many(self, at_most: int) -> ReplayError:
        """The error for a program that takes too long to replay."""
        return ReplayError(
            f"the program has more than {at_most:,} operations", why=self.limit, next="measure fewer calls"
        )

    def done_again(self, play: Callable[[Entry], Any], index: int, entry: Entry, *, owner: str = "the program") -> Any:
        """What `play` returns for an operation of `owner`; ReplayError for whatever keeps the machine from doing it."""
        try:
            return play(entry)
        except ReplayError:
            raise
        except EdlError as error:
            what = f"operation {index} of {owner} is not possible: {error.what}"
            raise ReplayError(what, why=error.why, next=error.next) from error
        except LookupError:
            raise self.malformed(index, f"is a {entry['op']} of something that {owner} did not create") from None

    def malformed(self, index: int, problem: str) -> ReplayError:
        """The error for an entry that is not an operation."""
        return ReplayError(
            f"operation {index} of the program {problem}",
            why=f"only what a {self.recorder} recorded can be replayed",
            next=f"return {self.source} as it is, without editing it",
        )


def require_same(index: int, entry: Mapping[str, Any], value: Any) -> None:
    """ReplayDisagreement unless what the operation recorded is the replayed value, of the same type."""
    recorded = entry["value"]
    if type(recorded) is not type(value) or recorded != value:
        raise ReplayDisagreement(index=index, operation=entry["op"], recorded=recorded, replayed=value)
