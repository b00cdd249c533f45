"""continuous: who runs in the next step and with which blocks: no block lost, no request stuck, no time wasted."""

from __future__ import annotations

from itertools import groupby
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab09b_serving.served_loads import (
    both_futures,
    foreseen,
    judged_futures,
    load_of,
    machine_of,
    passing,
    steps_of,
)
from edl_labs.units import counted, percent, seconds
from edl_labs.virtual.server import ServerReplay

MOST_TIME = 1.05  # of the best known schedule's, promised in the text
MOST_WAIT = 1.3  # times its p99 of the first token, promised there too
_SHARE = 0.99  # of the requests, promised there
_FILLED = 0.75  # of the blocks held: a last block that is half full leaves more than that
_PASSED = 0.1  # of the requests: more than that overtake on purpose
_AT_ONCE = 2.0  # preemptions of one call, on average: a request that leaves gives back several blocks, and one is short
_STALLED = 0.1  # of all that run in steps: more than a moment's want


@exercise("continuous", timeout_s=120.0)
class Continuous(Exercise):
    """Admission, blocks and eviction before each step of a server with a paged cache.

    `schedule(server)` is called before each step, and once in the end. The evidence is what it decides on two loads
    that part at some moment.
    """

    answers = "all"

    answer_form: ClassVar[Any] = {"load": "", "fork": ""}

    def probe(self, student: Any, given: Any) -> Any:
        return both_futures(given, lambda server: server.run(student.schedule))

    def public_want(self, case: Any, want: Any) -> Any:
        """The times of a good schedule: its decisions would be one to copy."""
        run = judged_futures(case, want)
        return {"makespan_s": run.makespan_s, "first_token_s": run.time_to_first_token_s(_SHARE)}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        run = judged_futures(case, got)
        best = want if "makespan_s" in want else self.public_want(case, want)
        _judge_end(run)
        if run.makespan_s > MOST_TIME * best["makespan_s"]:
            raise _slow(run, best["makespan_s"])
        if run.time_to_first_token_s(_SHARE) > MOST_WAIT * best["first_token_s"]:
            raise _late(run, best["first_token_s"])

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Decisions that foresee, in any case."""
        return foreseen(cases, got)

    def format_answer(self, case: Any, got: Any) -> str:
        """What the schedule reached."""
        try:
            run = judged_futures(case, got)
        except Wrong:
            return "no load was served as recorded"
        if run.unfinished:
            return f"{counted(run.unfinished, 'request')} of {len(run.requests)} without an answer"
        return (
            f"{seconds(run.makespan_s)} in all, first token p99 {seconds(run.time_to_first_token_s(_SHARE))}, "
            f"{run.mean_batch:.1f} requests per step, {counted(run.counts.get('preempt', 0), 'preemption')}"
        )

    def format_case(self, case: Any) -> str:
        """The pool and the load."""
        machine, load = machine_of(case), load_of(case, "load")
        prompts, outputs = (sorted(getattr(one, name) for one in load) for name in ("prompt_tokens", "output_tokens"))
        return (
            f"{counted(machine.blocks, 'block')} of {machine.block_tokens} tokens, up to {machine.most_sequences} at a "
            f"time; {len(load)} requests arrive within {seconds(load[-1].arrival_s)}, with prompts of {prompts[0]} to "
            f"{prompts[-1]}, answers of {outputs[0]} to {outputs[-1]} tokens"
        )


def _judge_end(run: ServerReplay) -> None:
    """Wrong where requests are left, or blocks."""
    if run.leaked_blocks:
        why = f"at the end, finished requests still hold {run.leaked_blocks} of {run.machine.blocks} blocks"
        if run.unfinished:
            why += f", and {counted(run.unfinished, 'request')} never finished"
        then = "free the blocks of all requests in server.finished before each step"
        raise Wrong("your schedule does not free the blocks of finished requests", why=why, next=then)
    if not run.unfinished:
        return
    left = f"{run.unfinished} of {counted(len(run.requests), 'request')} never finish"
    held = run.moments[-1].held if run.moments else 0
    if run.stalls and held < run.machine.blocks:
        why = f"{left}: at the end, {run.machine.blocks - held} blocks are free, but running requests do not get them"
        then = "in which steps does your code not reach the lines that give running requests their blocks?"
        raise Wrong("your schedule leaves running requests stalled while blocks are free", why=why, next=then)
    if run.stalls:
        why = (
            f"{left}: each running request needs a block, and together they hold {held} of {run.machine.blocks} blocks"
        )
        then = "preempt one request, so that the others can continue with its blocks"
        raise Wrong("in your schedule, all running requests wait for each other's blocks", why=why, next=then)
    why = f"{left}; the pool has {counted(run.machine.blocks, 'block')}"
    raise Wrong(
        "your schedule lets requests wait forever",
        why=why,
        next="admit a waiting request as soon as there are enough free blocks for it",
    )


def _slow(run: ServerReplay, best_s: float) -> Wrong:
    why = f"the load takes {seconds(run.makespan_s)}, but {seconds(best_s)} is possible"
    if run.mean_batch < 1.05:
        then = "let several requests run together: the weights are read once for all of them"
        return Wrong("your schedule runs only one request at a time", why=why, next=then)
    if run.filled_share < _FILLED:
        why += f"; only {percent(run.filled_share)} of the allocated cache holds tokens"
        then = "allocate only what a request needs for its next step, because its answer may end soon"
        return Wrong("your schedule reserves blocks for tokens that may never be generated", why=why, next=then)
    if _is_static(run):
        why += "; requests hardly ever join a batch before the whole batch has ended"
        then = "admit requests before every step"
        return Wrong(
            "in your schedule, the next batch waits for the longest answer of the current batch", why=why, next=then
        )
    told = _wasted(run, why) or _passed(run, why)
    if told is not None:
        return told
    is_full = max(one.running for one in run.moments) == run.machine.most_sequences
    if not is_full and max(one.held for one in run.moments) < 0.9 * run.machine.blocks:
        why += f"; at most {max(one.held for one in run.moments)} of {run.machine.blocks} blocks are in use"
        return Wrong(
            "your schedule keeps blocks free while requests wait",
            why=why,
            next="admit every request for which there are enough free blocks",
        )
    why += f"; {run.mean_batch:.1f} requests run in a step"
    return Wrong(
        "your schedule runs too few requests at a time", why=why, next="when could the next request have been admitted?"
    )


def _wasted(run: ServerReplay, why: str) -> Wrong | None:
    """What is wrong with who leaves, or with who runs without blocks; None where neither is."""
    bare, admitted = _bare(run)
    if bare > _STALLED * admitted:
        why += f"; {bare} of {admitted} admitted requests hold no block when their first step begins"
        then = "allocate the blocks that a request needs: admit() allocates none"
        return Wrong("your schedule admits requests without giving them blocks", why=why, next=then)
    if run.stalls > _STALLED * sum(one.running for one in run.moments):
        why += f"; running requests are stalled {counted(run.stalls, 'time')} for lack of a block"
        then = "give blocks to running requests before you admit waiting ones"
        return Wrong("your schedule does not give running requests the blocks that they need", why=why, next=then)
    groups, older = _taken_out(run)
    if run.stalls and not groups:
        stalled = counted(run.stalls, "time")
        why += f"; running requests are stalled {stalled} for lack of a block, but none is preempted"
        then = "preempt a request when a running request lacks a block, so that the others continue"
        return Wrong("in your schedule, running requests wait for each other's blocks", why=why, next=then)
    if not groups:
        return None
    why += f"; {counted(sum(groups), 'preemption')} throw away {run.recomputed_tokens:,} cached tokens"
    if sum(groups) > _AT_ONCE * len(groups):
        why += f"; on average, {sum(groups) / len(groups):.1f} requests are preempted at a time"
        then = "how many requests must you preempt to free one block?"
        return Wrong("your schedule preempts more requests than the missing blocks require", why=why, next=then)
    if older > sum(groups) / 2:
        why += f"; {older} of the preempted requests had been running longer than a request that stayed"
        if _are_largest(run):
            why += ", and each preempted request held the most blocks of all running ones"
        then = "which request would lose the least work, and which has already waited longest?"
        return Wrong("your schedule preempts early requests while later ones stay", why=why, next=then)
    return None


def _bare(run: ServerReplay) -> tuple[int, int]:
    """How many requests begin a step after their admission without a block, and how many are admitted."""
    bare = admitted = 0
    holding: set[int] = set()
    fresh: set[int] = set()
    for entry in run.program:
        if entry["op"] == "admit":
            fresh.add(entry["request"])
        elif entry["op"] == "allocate":
            holding.add(entry["request"])
        elif entry["op"] in ("preempt", "free"):
            holding.discard(entry["request"])
            fresh.discard(entry["request"])
        elif entry["op"] == "step":
            bare, admitted = bare + len(fresh - holding), admitted + len(fresh)
            fresh.clear()
    return bare, admitted


def _taken_out(run: ServerReplay) -> tuple[list[int], int]:
    """How many are preempted in a row, each time, and how many of all while one that was admitted later stays."""
    groups: list[int] = []
    running: list[int] = []
    older = 0
    for op, entries in groupby(run.program, key=lambda entry: entry["op"]):
        named = [entry["request"] for entry in entries if "request" in entry]
        if op == "admit":
            running += named
        elif op in ("preempt", "free"):
            stay = [number for number in running if number not in named]
            if op == "preempt":
                groups.append(len(named))
                newest = running.index(stay[-1]) if stay else -1
                older += sum(running.index(number) < newest for number in named)
            running = stay
    return groups, older


def _are_largest(run: ServerReplay) -> bool:
    """Whether each preempted request holds the most blocks of those that run, and at times more than all others."""
    held: dict[int, int] = {}
    running: set[int] = set()
    more = False
    for entry in run.program:
        number = entry.get("request", -1)
        if entry["op"] == "admit":
            running.add(number)
        elif entry["op"] == "allocate":
            held[number] = held.get(number, 0) + entry["blocks"]
        elif entry["op"] in ("preempt", "free"):
            running.discard(number)
            mine, others = held.pop(number, 0), [held.get(one, 0) for one in running]
            if entry["op"] == "preempt" and others:
                if mine < max(others):
                    return False
                more = more or mine > max(others)
    return more


def _is_static(run: ServerReplay) -> bool:
    """Whether requests join only when nobody runs, or nearly so."""
    running: set[int] = set()
    joined = ends = 0
    for batch, moment in zip(steps_of(run), run.moments, strict=False):
        if batch:
            ends += 1
            joined += bool(running) and moment.running > len(batch)
        running.update(batch)
    return ends > 0 and joined < 0.1 * ends


def _late(run: ServerReplay, best_s: float) -> Wrong:
    why = (
        f"the p99 of the time to first token is {seconds(run.time_to_first_token_s(_SHARE))}, "
        f"but {seconds(best_s)} is possible"
    )
    told = _wasted(run, why) or _passed(run, why)
    if told is not None:
        return told
    if run.counts.get("preempt", 0) > 0.5 * len(run.requests):
        why += f"; {counted(run.counts['preempt'], 'preemption')}"
        then = "which request do you preempt, and which request gets its blocks?"
        return Wrong("your schedule preempts requests again and again", why=why, next=then)
    preempted = counted(run.counts.get("preempt", 0), "preemption")
    why += f"; there are {preempted}, and running requests are stalled {counted(run.stalls, 'time')}"
    then = (
        "what delays the requests with the latest first token: do they lack blocks or a place, or are they preempted?"
    )
    return Wrong("with your schedule, the first tokens come too late", why=why, next=then)


def _passed(run: ServerReplay, why: str) -> Wrong | None:
    """What is wrong with the order of admission; None where it is that of arrival."""
    pairs = [(number, other) for number, others in passing(run).items() for other in others]
    if len(pairs) <= _PASSED * len(run.requests):
        return None
    prompts = [one.prompt_tokens for one in run.requests]
    then = "admit from the front of server.waiting, where the oldest request is"
    if sum(prompts[other] <= prompts[number] for number, other in pairs) > 0.9 * len(pairs):
        return Wrong("your schedule lets shorter prompts overtake longer ones", why=why, next=then)
    return Wrong("your schedule admits later requests before earlier ones", why=why, next=then)
