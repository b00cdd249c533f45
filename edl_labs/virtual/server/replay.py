"""Replaying what a policy decided: the same requests on a fresh server, and what each of them waited for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from edl_labs.presenters import Plottable
from edl_labs.values import Value
from edl_labs.virtual.program import MAX_REPLAYED, Entry
from edl_labs.virtual.quantities import PER_SECOND
from edl_labs.virtual.server.engine import FINISHED, PoolMoment, RequestState, Revealed
from edl_labs.virtual.server.machine import ServerMachine
from edl_labs.virtual.server.program import PROGRAM
from edl_labs.virtual.server.virtual_server import VirtualServer
from edl_labs.virtual.timeline import Span, Timeline

_KINDS = {"wait": "wait", "queue": "wait", "prefill": "work", "decode": "kernel"}


@dataclass(frozen=True)
class ServedRequest:
    """What became of a request, in seconds from the start; times of what did not happen are None."""

    number: int
    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    generated_tokens: int
    first_token_s: float | None
    finish_s: float | None
    longest_gap_s: float
    preemptions: int

    @property
    def latency_s(self) -> float:
        """The time from arrival to the last token; infinite if there was none."""
        return math.inf if self.finish_s is None else self.finish_s - self.arrival_s

    @property
    def time_to_first_token_s(self) -> float:
        """The time from arrival to the first token; infinite if there was none."""
        return math.inf if self.first_token_s is None else self.first_token_s - self.arrival_s

    @property
    def inter_token_s(self) -> float:
        """The mean time between its tokens; 0 for an answer of one."""
        if self.finish_s is None or self.first_token_s is None:
            return math.inf
        return (self.finish_s - self.first_token_s) / max(1, self.output_tokens - 1)


@dataclass(frozen=True, repr=False)
class ServerReplay(Value, Plottable):
    """A load under a policy, from its decisions alone.

    `makespan_s` is the end of the last step, `busy_s` the time in steps. `leaked_blocks` are held in the end, by no
    request that needs them; `stuck` says that requests were left that wait for ever. `stalls` counts a running request
    that was stalled in a step for lack of blocks, `recomputed_tokens` what was cached and thrown away.
    """

    OMITTED = ("program", "moments", "revealed", "seen", "phases")

    machine: ServerMachine
    requests: tuple[ServedRequest, ...]
    counts: Mapping[str, int]
    makespan_s: float
    busy_s: float
    steps: int
    stalls: int
    recomputed_tokens: int
    leaked_blocks: int
    stuck: bool
    program: tuple[Entry, ...] = field(repr=False)
    moments: tuple[PoolMoment, ...] = field(repr=False)
    revealed: tuple[Revealed, ...] = field(repr=False)
    seen: tuple[int, ...] = field(repr=False)
    phases: tuple[tuple[tuple[str, int, int], ...], ...] = field(repr=False)

    @property
    def unfinished(self) -> int:
        """Requests whose answer is not complete."""
        return sum(one.finish_s is None for one in self.requests)

    @property
    def request_per_s(self) -> float:
        """Finished requests divided by the makespan."""
        return (len(self.requests) - self.unfinished) / self.makespan_s if self.makespan_s else 0.0

    @property
    def token_per_s(self) -> float:
        """Answer tokens divided by the makespan."""
        made = sum(one.generated_tokens for one in self.requests)
        return made / self.makespan_s if self.makespan_s else 0.0

    @property
    def utilisation(self) -> float:
        """The share of the makespan in which steps ran."""
        return self.busy_s / self.makespan_s if self.makespan_s else 0.0

    def latency_s(self, share: float) -> float:
        """The latency within which this share (0.5, 0.99) of the requests finishes."""
        return percentile((one.latency_s for one in self.requests), share)

    def time_to_first_token_s(self, share: float) -> float:
        """The same for the time to the first token."""
        return percentile((one.time_to_first_token_s for one in self.requests), share)

    def inter_token_s(self, share: float) -> float:
        """The same for the requests' mean times between tokens."""
        return percentile((one.inter_token_s for one in self.requests), share)

    def goodput_per_s(self, *, latency_s: float = math.inf, first_token_s: float = math.inf) -> float:
        """Requests per second that were answered within the limits."""
        good = sum(one.latency_s <= latency_s and one.time_to_first_token_s <= first_token_s for one in self.requests)
        return good / self.makespan_s if self.makespan_s else 0.0

    @property
    def mean_batch(self) -> float:
        """The average number of running requests in a step."""
        return sum(one.running for one in self.moments) / len(self.moments) if self.moments else 0.0

    @property
    def filled_share(self) -> float:
        """The share of the allocated cache that contained tokens, over all steps."""
        held = sum(one.held for one in self.moments) * self.machine.block_tokens
        return sum(one.tokens for one in self.moments) / held if held else 1.0

    @property
    def timeline(self) -> Timeline:
        """What each request did when: waiting, its prompt, its tokens; `to_chrome_trace()` opens in Perfetto."""
        return Timeline(
            tuple(
                Span(f"request {number}", _KINDS[kind], kind, start / PER_SECOND, end / PER_SECOND)
                for number, phases in enumerate(self.phases)
                for kind, start, end in phases
            )
        )


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that at least this share of all values does not exceed (nearest rank); 0 of none.

    >>> percentile(range(1, 101), 0.99), percentile([3.0, 1.0, 2.0], 0.5)
    (99, 2.0)
    """
    ordered = sorted(values)
    # 100 x 0.99 is a little more than 99 in floats: one per billion is forgiven.
    return ordered[max(0, math.ceil(len(ordered) * share - 1e-9) - 1)] if ordered else 0.0


def replay_server(
    program: object,
    machine: ServerMachine | Mapping[str, Any],
    load: Iterable[Any],
    *,
    max_operations: int = MAX_REPLAYED,
) -> ServerReplay:
    """Do recorded decisions again, on a fresh server with these requests.

    Raises ReplayDisagreement where a step did not end when it is said to, and ReplayError where `program` is not one
    that a server of these requests could have recorded: never anything else, whatever it is.

    >>> server = VirtualServer(ServerMachine(step_s=1e-3), [(0.0, 16, 1)])
    >>> program = server.run(lambda one: one.waiting and [one.admit(0), one.allocate(0, 1)]).program
    >>> replay_server(program, server.machine, server.load).steps
    1
    """
    server = VirtualServer(machine, load)
    server.engine.traced = True
    counts: Counter[str] = Counter()
    for _, entry, _ in PROGRAM.replayed(server, program, at_most=max_operations):
        counts[entry["op"]] += 1
    return _result(server, counts)


def replay(server: VirtualServer) -> ServerReplay:
    """The replay of what a server did so far: its figures, pictures and timeline."""
    return replay_server(server.program, server.machine, server.load)


def decides_otherwise(first: ServerReplay, second: ServerReplay) -> int | None:
    """The first decision in which two runs of a policy differ although both had seen the same until then, or None.

    Loads that part at some moment are equal before it: a policy that decides differently uses knowledge that it cannot
    have, or chance.
    """
    one, other = (_decisions(run) for run in (first, second))
    for index in range(max(len(one), len(other))):
        mine, theirs = (found[index] if index < len(found) else None for found in (one, other))
        if mine != theirs:
            known = [run.revealed[: _seen(run, index)] for run in (first, second)]
            return index if known[0] == known[1] else None
    return None


def _decisions(run: ServerReplay) -> list[tuple[Any, ...]]:
    return [tuple(value for name, value in entry.items() if name != "value") for entry in run.program]


def _seen(run: ServerReplay, index: int) -> int:
    return run.seen[index] if index < len(run.seen) else len(run.revealed)


def _result(server: VirtualServer, counts: Mapping[str, int]) -> ServerReplay:
    engine = server.engine
    return ServerReplay(
        machine=server.machine,
        requests=tuple(_served(number, one) for number, one in enumerate(engine.requests)),
        counts=dict(counts),
        makespan_s=engine.moments[-1].time_ps / PER_SECOND if engine.moments else 0.0,
        busy_s=engine.busy_ps / PER_SECOND,
        steps=engine.steps,
        stalls=engine.stalls,
        recomputed_tokens=sum(one.recomputed for one in engine.requests),
        leaked_blocks=sum(one.held for one in engine.requests if one.state == FINISHED),
        stuck=engine.is_open or engine.stuck,
        program=tuple(server._recorded),
        moments=tuple(engine.moments),
        revealed=tuple(engine.revealed),
        seen=tuple(server._seen),
        phases=tuple(tuple(one.phases) for one in engine.requests),
    )


def _served(number: int, one: RequestState) -> ServedRequest:
    times = [moment / PER_SECOND for moment in one.token_ps]
    return ServedRequest(
        number=number,
        arrival_s=one.arrival_ps / PER_SECOND,
        prompt_tokens=one.prompt,
        output_tokens=one.output,
        generated_tokens=one.generated,
        first_token_s=times[0] if times else None,
        finish_s=times[-1] if one.state == FINISHED else None,
        longest_gap_s=max((later - earlier for earlier, later in pairwise(times)), default=0.0),
        preemptions=one.preemptions,
    )
