"""The state of a server on virtual time: who waits, who runs, who holds which blocks, and what a step does to them."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field

from edl_labs.virtual.errors import VirtualServerError
from edl_labs.virtual.quantities import PER_SECOND
from edl_labs.virtual.server.arrivals import Arrival
from edl_labs.virtual.server.machine import ServerMachine, StepWork

FUTURE, WAITING, RUNNING, FINISHED = "future", "waiting", "running", "finished"
Revealed = tuple[str, int, int, int]  # "arrive" or "finish", the request, when, the tokens of its prompt


@dataclass
class RequestState:
    """One request on the server; `cached` tokens of it have keys and values, `held` blocks are its own."""

    arrival_ps: int
    prompt: int
    output: int
    state: str = FUTURE
    generated: int = 0
    cached: int = 0
    held: int = 0
    preemptions: int = 0
    recomputed: int = 0
    token_ps: list[int] = field(default_factory=list)
    admitted_ps: list[int] = field(default_factory=list)
    phases: list[tuple[str, int, int]] = field(default_factory=list)  # (kind, from, to), of a machine that is traced

    @property
    def due_tokens(self) -> int:
        """Tokens of it that have keys and values after its next step: all of them at first, one more later."""
        return self.cached + 1 if self.cached else self.prompt + self.generated


@dataclass
class PoolMoment:
    """The block pool after a step: held blocks and their tokens, and how many requests ran or were stalled."""

    time_ps: int
    held: int
    tokens: int
    running: int
    waiting: int
    stalled: int


class ServerEngine:
    """What a VirtualServer does: the same for a policy that is tried and for a program that is replayed."""

    def __init__(self, machine: ServerMachine, load: Sequence[Arrival], *, traced: bool) -> None:
        self.machine, self.traced = machine, traced
        self.requests = [
            RequestState(round(one.arrival_s * PER_SECOND), one.prompt_tokens, one.output_tokens) for one in load
        ]
        self.now = self._come = 0
        self.free_blocks = machine.blocks
        self.waiting: list[int] = []
        self.running: list[int] = []
        self.done: list[int] = []  # finished, and their blocks not yet free
        self.stuck = False
        self.revealed: list[Revealed] = []
        self.moments: list[PoolMoment] = []
        self.busy_ps = self.steps = self.stalls = 0
        self._reveal()

    @property
    def is_open(self) -> bool:
        """Whether something waits, runs or is still to come, and not all of it for ever."""
        return not self.stuck and bool(self.waiting or self.running or self._come < len(self.requests))

    def needs(self, number: int) -> int:
        """The blocks that a request still needs for its next step."""
        one = self.requests[number]
        return max(0, self.machine.blocks_for(one.due_tokens) - one.held)

    def admit(self, number: int) -> None:
        """Move a request from waiting to running."""
        one = self._in_state(number, WAITING, "admit", "only a request that has arrived and waits can be admitted")
        if len(self.running) >= self.machine.most_sequences:
            raise VirtualServerError(
                f"cannot admit request {number}: the batch is full",
                why=f"this server runs at most {self.machine.most_sequences} requests at a time",
                next="let this request wait until another one has finished",
            )
        self.waiting.remove(number)
        self.running.append(number)
        one.state = RUNNING
        self._close_phase(one, "wait")
        one.admitted_ps.append(self.now)

    def allocate(self, number: int, blocks: int) -> None:
        """Blocks of the pool for a request that waits or runs."""
        one = self.requests[number]
        if one.state not in (WAITING, RUNNING):
            raise VirtualServerError(
                f"cannot allocate blocks for request {number}, which is {_SAYS[one.state]}",
                why="only waiting and running requests can have blocks for keys and values",
                next="check server.waiting and server.running",
            )
        if blocks > self.free_blocks:
            raise VirtualServerError(
                f"cannot allocate {blocks} blocks for request {number}: only {self.free_blocks} are free",
                why=f"the pool has {self.machine.blocks} blocks in total",
                next="check server.free_blocks first; free the blocks of finished requests, or preempt a request",
            )
        one.held += blocks
        self.free_blocks -= blocks

    def free(self, number: int) -> None:
        """Return all blocks of a request to the pool."""
        one = self.requests[number]
        if one.state == RUNNING or not one.held:
            state = "the request is running and reads them" if one.state == RUNNING else "the request has no blocks"
            raise VirtualServerError(
                f"the blocks of request {number} cannot be freed",
                why=state,
                next="free the blocks of a finished request once; preempt(request) stops a running request and frees "
                "its blocks",
            )
        if number in self.done:
            self.done.remove(number)
        self._give_back(one)

    def preempt(self, number: int) -> None:
        """From running back to waiting: blocks are freed, and what was cached will be computed again."""
        one = self._in_state(number, RUNNING, "preempt", "only a running request can be preempted")
        self.running.remove(number)
        bisect.insort(self.waiting, number)  # by arrival: it comes before all that came later
        self._close_phase(one, "decode")
        one.state, one.preemptions, one.recomputed = WAITING, one.preemptions + 1, one.recomputed + one.cached
        one.cached = 0
        self._give_back(one)

    def wait(self, until_ps: int | None) -> None:
        """Leave the device idle until the next request arrives, or until a time."""
        if until_ps is not None and until_ps <= self.now:
            raise VirtualServerError(
                f"cannot wait until {until_ps / PER_SECOND:.9g} s: it is already {self.now / PER_SECOND:.9g} s",
                why="the policy asked only to wait until a time that has passed, so the device would wait forever",
                next="as soon as that time is reached, decide which requests run",
            )
        coming = self.requests[self._come].arrival_ps if self._come < len(self.requests) else None
        times = [one for one in (coming, until_ps) if one is not None]
        if times:
            self._pass_to(min(times))
        else:
            self.stuck = True

    def step(self) -> int:
        """A token for every running request that has its blocks; the seconds are those of the machine (ps)."""
        if not self.running:
            raise VirtualServerError(
                "step() was called, but no request is running",
                why="no request has been admitted",
                next="call admit(request) first, or wait()",
            )
        able = [number for number in self.running if not self.needs(number)]
        self.stalls += len(self.running) - len(able)
        if not able:
            self.wait(None)  # for whoever comes next: nobody here goes on by itself
            return 0
        work = self.work_of(able)
        took = self.step_ps(able, work)
        began, running = self.now, len(self.running)
        self._pass_to(began + took)
        self.busy_ps, self.steps = self.busy_ps + took, self.steps + 1
        for number in able:
            self._advance(number, began)
        self._note(running, running - len(able))
        return took

    def work_of(self, able: Sequence[int]) -> StepWork:
        """What a step of these requests has to do."""
        mine = [self.requests[number] for number in able]
        prompts = tuple(one.due_tokens for one in mine if not one.cached)
        return StepWork(prompts, tuple(one.cached + 1 for one in mine if one.cached))

    def step_ps(self, able: Sequence[int], work: StepWork) -> int:
        """Picoseconds of a step: the machine's. A server that really computes measures it instead."""
        return self.machine.work_ps(work)

    def _advance(self, number: int, began: int) -> None:
        one = self.requests[number]
        if not one.cached:
            self._close_phase(one, "queue", at=began)
            self._close_phase(one, "prefill")
        one.cached = one.due_tokens
        one.generated += 1
        one.token_ps.append(self.now)
        if one.generated == one.output:
            self._close_phase(one, "decode")
            one.state = FINISHED
            self.running.remove(number)
            self.done.append(number)
            self.revealed.append(("finish", number, self.now, one.prompt))

    def _pass_to(self, moment: int) -> None:
        self.now = moment
        self._reveal()

    def _reveal(self) -> None:
        while self._come < len(self.requests) and self.requests[self._come].arrival_ps <= self.now:
            one = self.requests[self._come]
            one.state = WAITING
            bisect.insort(self.waiting, self._come)
            self.revealed.append(("arrive", self._come, one.arrival_ps, one.prompt))
            self._come += 1

    def _give_back(self, one: RequestState) -> None:
        self.free_blocks += one.held
        one.held = 0

    def _note(self, running: int, stalled: int) -> None:
        tokens = sum(self.requests[number].cached for number in (*self.running, *self.done))
        held = self.machine.blocks - self.free_blocks
        self.moments.append(PoolMoment(self.now, held, tokens, running, len(self.waiting), stalled))

    def _close_phase(self, one: RequestState, kind: str, at: int | None = None) -> None:
        """Note what a request did since its last phase; nothing where no time passed."""
        end = self.now if at is None else at
        began = one.phases[-1][2] if one.phases else one.arrival_ps
        if self.traced and end > began:
            one.phases.append((kind, began, end))

    def _in_state(self, number: int, state: str, verb: str, why: str) -> RequestState:
        one = self.requests[number]
        if one.state != state:
            raise VirtualServerError(
                f"cannot {verb} request {number}, which is {_SAYS[one.state]}", why=why, next="check server.waiting"
            )
        return one


_SAYS = {FUTURE: "still to arrive", WAITING: "waiting", RUNNING: "running", FINISHED: "finished"}
