"""VirtualServer: a decoder that is served in steps, with a queue and a pool of blocks, driven by a policy."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from edl_labs.virtual.errors import VirtualServerError, shown
from edl_labs.virtual.program import MAX_REPLAYED, Entry
from edl_labs.virtual.quantities import PER_SECOND, picoseconds
from edl_labs.virtual.server.arrivals import Arrival, checked_arrivals
from edl_labs.virtual.server.engine import FUTURE, ServerEngine
from edl_labs.virtual.server.machine import ServerMachine, server_machine

_HAIR = 1000  # picoseconds: a nanosecond is far more than floats lose in a day, and far less than any step


class ServerRequest(NamedTuple):
    """A request as a policy sees it, at one moment; the length of its answer is unknown.

    It holds `blocks`, and lacks `needs` more for its next step; `cached_tokens` have keys and values.
    """

    number: int
    arrival_s: float
    prompt_tokens: int
    generated_tokens: int
    cached_tokens: int
    blocks: int
    needs: int


class VirtualServer:
    """A device that serves requests in steps, on virtual time: exact, the same on every run and every computer.

    A step computes the prompts of requests that were admitted since the last one, and one token for each that runs
    already: continuous batching. A policy sees what has come and nothing of what will, and says who is admitted, who
    holds which blocks and who is taken out again; a running request without its blocks is stalled. All that it says
    is kept in `program`.

    >>> server = VirtualServer(ServerMachine(blocks=4), [(0.0, 20, 2)])
    >>> (request,) = server.waiting
    >>> server.allocate(request, request.needs)
    >>> server.admit(request)
    >>> server.step(); server.step()
    >>> [one.number for one in server.finished], server.free_blocks, server.is_open
    ([0], 2, False)
    """

    def __init__(self, machine: ServerMachine | Mapping[str, Any], load: Iterable[Arrival | tuple[Any, ...]]) -> None:
        self.machine = server_machine(machine)
        self.load = checked_arrivals(load)
        longest = max((one.output_tokens for one in self.load), default=1)
        if longest > self.machine.most_output_tokens:
            raise VirtualServerError(
                f"the longest answer has {longest:,} tokens",
                why=f"this server generates at most {self.machine.most_output_tokens:,} tokens per answer",
                next="increase the machine's most_output_tokens, or draw shorter answers",
            )
        self.engine = self._engine()
        self._recorded: list[Entry] = []
        self._seen: list[int] = []

    def _engine(self) -> ServerEngine:
        return ServerEngine(self.machine, self.load, traced=False)

    @property
    def now_s(self) -> float:
        """The time."""
        return self.engine.now / PER_SECOND

    @property
    def is_open(self) -> bool:
        """Whether something waits, runs or is still to come; False too where all that is left waits for ever."""
        return self.engine.is_open

    @property
    def free_blocks(self) -> int:
        """The number of free blocks in the pool."""
        return self.engine.free_blocks

    @property
    def waiting(self) -> tuple[ServerRequest, ...]:
        """Requests that have come and do not run, in the order of their arrival; preempted ones are among them."""
        return tuple(map(self._view, self.engine.waiting))

    @property
    def running(self) -> tuple[ServerRequest, ...]:
        """Requests of the next step, in the order in which they were admitted."""
        return tuple(map(self._view, self.engine.running))

    @property
    def finished(self) -> tuple[ServerRequest, ...]:
        """Requests that have finished but still hold their blocks."""
        return tuple(map(self._view, self.engine.done))

    def admit(self, request: ServerRequest | int) -> None:
        """Let a waiting request run from the next step on, which computes its prompt; its blocks are not given here."""
        number = self._number(request)
        self._keep({"op": "admit", "request": number})
        self.engine.admit(number)

    def allocate(self, request: ServerRequest | int, blocks: int) -> None:
        """Give a request more blocks of the pool."""
        number = self._number(request)
        if type(blocks) is not int or blocks < 1:
            raise VirtualServerError(
                f"cannot allocate {shown(blocks)} blocks for request {number}",
                why="the number of blocks must be 1 or more",
                next="call allocate(request, request.needs) only if the request needs blocks",
            )
        self._keep({"op": "allocate", "request": number, "blocks": blocks})
        self.engine.allocate(number, blocks)

    def free(self, request: ServerRequest | int) -> None:
        """Give all blocks of a finished request back to the pool."""
        number = self._number(request)
        self._keep({"op": "free", "request": number})
        self.engine.free(number)

    def preempt(self, request: ServerRequest | int) -> None:
        """Stop a running request: it waits again, its blocks are freed, and its tokens are computed again later."""
        number = self._number(request)
        self._keep({"op": "preempt", "request": number})
        self.engine.preempt(number)

    def step(self) -> None:
        """Run the batch once. Where all running requests lack blocks, time passes until another request comes."""
        entry: Entry = {"op": "step", "value": 0.0}
        self._keep(entry)
        self.engine.step()
        entry["value"] = self.now_s

    def wait(self, until_s: float | None = None) -> None:
        """Leave the device idle until the next request arrives, or until a time, whichever is earlier."""
        moment = None if until_s is None else _moment(until_s)
        if moment is not None and until_s is not None:
            moment = self._ahead(moment, until_s)
        entry: Entry = {"op": "wait", "until_s": until_s, "value": 0.0}
        self._keep(entry)
        self.engine.wait(moment)
        entry["value"] = self.now_s

    def _ahead(self, moment: int, until_s: float) -> int:
        """A moment in picoseconds; one that has just been waited for, and is waited for once more, a hair later.

        Floats do that: `until_s - arrival_s < limit_s` may hold where `until_s < arrival_s + limit_s` does not.
        """
        if until_s > self.now_s:
            return max(moment, self.engine.now + 1)  # a sum of floats may lie less than a picosecond ahead
        last = self._recorded[-1] if self._recorded else {}
        waited_s = last.get("until_s")
        is_again = waited_s is not None and picoseconds(waited_s, "until_s") == moment == self.engine.now
        return moment + _HAIR if is_again else moment

    def run(self, policy: Callable[[VirtualServer], object]) -> VirtualServer:
        """Serve the whole load: before each step `policy(server)` is called, and once behind the last one.

        Where no request runs after the call, the device waits for the next request.
        """
        while self.is_open:
            policy(self)
            if self.engine.running:
                self.step()
            elif self.is_open:
                self.wait()
        policy(self)
        return self

    @property
    def program(self) -> list[Entry]:
        """Everything that was decided, and when each step ended, as plain data: evidence to replay (a copy)."""
        return [{**entry} for entry in self._recorded]

    def _view(self, number: int) -> ServerRequest:
        one = self.engine.requests[number]
        arrival_s, needs = one.arrival_ps / PER_SECOND, self.engine.needs(number)
        return ServerRequest(number, arrival_s, one.prompt, one.generated, one.cached, one.held, needs)

    def _keep(self, entry: Entry) -> None:
        if len(self._recorded) >= MAX_REPLAYED:
            raise VirtualServerError(
                f"the policy made more than {MAX_REPLAYED:,} decisions",
                why="no load of this size needs that many, so the policy probably repeats the same decisions forever",
                next="look for a request that is admitted and preempted over and over",
            )
        self._recorded.append(entry)
        self._seen.append(len(self.engine.revealed))

    def _number(self, request: object) -> int:
        number = request.number if isinstance(request, ServerRequest) else request
        if hasattr(number, "__index__") and type(number) is not bool:
            number = operator.index(number)  # numpy's whole numbers are numbers too
        requests = self.engine.requests
        if type(number) is int and 0 <= number < len(requests) and requests[number].state != FUTURE:
            return number
        raise VirtualServerError(
            f"{shown(number)} is not a request that has arrived",
            why="a policy can only use requests in waiting, running and finished",
            next="choose one from server.waiting",
        )


def serve_batches(server: VirtualServer, next_batch: Callable[..., Any]) -> VirtualServer:
    """Serve requests for one answer: whenever the device is idle, `next_batch(now_s, queue)` says what runs at once.

    It gives numbers of waiting requests, or nothing to wait for the next arrival, or a time until which to wait.
    Blocks are handed out as needed: a pool that lacks them has no place here.
    """
    while server.is_open:
        chosen = _numbers(next_batch(server.now_s, list(server.waiting))) if server.waiting else []
        if isinstance(chosen, float) or not chosen:
            server.wait(chosen if isinstance(chosen, float) else None)
            continue
        _require_waiting(server, chosen)
        for number in chosen:
            server.admit(number)
            server.allocate(number, server.engine.needs(number))
        server.step()
        for one in server.finished:
            server.free(one)
    return server


def _require_waiting(server: VirtualServer, chosen: list[int]) -> None:
    numbers = [one.number for one in server.waiting]
    for at, number in enumerate(chosen):
        if number not in numbers or number in chosen[:at]:
            raise VirtualServerError(
                f"next_batch() returned {number}"
                + (" twice" if number in numbers else ", but no waiting request has this number"),
                why=f"next_batch() must return waiting requests' numbers, each once; queue[0].number is {numbers[0]}",
                next="return [one.number for one in queue[:8]], not positions in the queue",
            )
    most = server.machine.most_sequences
    if len(chosen) > most:
        raise VirtualServerError(
            f"next_batch() returned {len(chosen)} numbers, but a batch has at most {most}",
            why=f"this server runs at most {most} requests at a time",
            next="return at most service.most_sequences numbers, and leave the other requests for later batches",
        )


def _numbers(chosen: Any) -> float | list[int]:
    """A time, or the numbers of requests, from what a policy returned: a list, an array, a generator, nothing."""
    if chosen is None:
        return []
    if hasattr(chosen, "__float__") and not hasattr(chosen, "__iter__"):
        return float(chosen)
    try:
        return [one.number if isinstance(one, ServerRequest) else operator.index(one) for one in chosen]
    except TypeError:
        raise VirtualServerError(
            f"next_batch() returned {shown(chosen)}",
            why="next_batch() must return a list of request numbers, or a time until which to wait",
            next="return [one.number for one in queue[:8]], or [] to wait for the next arrival",
        ) from None


def _moment(until_s: object) -> int:
    try:
        return picoseconds(until_s, "until_s")
    except Exception as error:
        raise VirtualServerError(error.what, why=error.why, next=error.next) from None  # type: ignore[attr-defined]
