"""ring: an all-reduce from sends and receives, judged by what each element holds, what links carried and how long."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.cluster_programs import (
    bound_programs,
    case_programs,
    replayed_programs,
    require_calls,
    written_programs,
)
from edl_labs.units import byte_count, byte_rate, seconds
from edl_labs.virtual.cluster import (
    ClusterMachine,
    ClusterPart,
    ClusterReplay,
    Rank,
    RankTensor,
    VirtualCluster,
    replay_cluster,
)
from edl_labs.virtual.cluster.program import OPERATIONS

MOST_TIME = 1.02  # of a ring's, promised in the lab's text
_ITEM_BYTES = {"fp32": 4, "bf16": 2}


@exercise("ring")
class Ring(Exercise):
    """An all-reduce of a buffer, by one rank's sends and receives.

    `all_reduce(dist, buffer)` is called on every rank of a VirtualCluster. The evidence is the ranks' programs.
    """

    answers = ("programs", "programs.scale.factor")

    answer_form: ClassVar[Any] = {"programs": ""}

    def probe(self, student: Any, given: Any) -> Any:
        def program(dist: Any) -> None:
            student.all_reduce(dist, _buffer(given, dist))

        return {"programs": written_programs(VirtualCluster(_machine(given)).record(program))}

    def public_want(self, case: Any, want: Any) -> Any:
        """The ring's time: its program would be the answer."""
        return {"makespan_s": replayed_programs(want["programs"], _machine(case)).makespan_s}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        machine = _machine(case)
        fixed = case_programs(machine, lambda rank: _buffer(case, rank), own=tuple(OPERATIONS))
        run = bound_programs(got["programs"], machine, fixed)
        require_calls(run, ())
        _judge_waiting(run)
        _judge_races(run)
        _judge_sums(case, run)
        _judge_open_work(case, run, machine)
        _judge_links(case, run)
        ring_s = 2 * (case["ranks"] - 1) * (case["alpha_s"] + _chunk_bytes(case) / case["byte_per_s"])
        if run.makespan_s > MOST_TIME * ring_s:
            raise _time_symptom(case, run, ring_s)

    def explain_exception(self, case: Any, error: str) -> Wrong | None:
        """What an index and a part that do not exist mean where some chunks are empty."""
        chunk = -(-case["numel"] // case["ranks"])
        has_empty = chunk * (case["ranks"] - 1) >= case["numel"]
        if error == "IndexError" or (error == "VirtualClusterError" and has_empty):
            why = f"{case['ranks']} ranks share {case['numel']} elements; your code raised {error}"
            then = (
                "compute where each of the P chunks starts and ends, and skip the empty ones when you send and receive"
            )
            return Wrong("your code fails when the elements are divided among the ranks", why=why, next=then)
        return None

    def format_case(self, case: Any) -> str:
        """The ranks, the buffer and the links."""
        return (
            f"{case['ranks']} ranks, a buffer of {case['numel']} {case['dtype']} elements; links with "
            f"{seconds(case['alpha_s'])} and {byte_rate(case['byte_per_s'])}"
        )


def _machine(case: Any) -> ClusterMachine:
    return ClusterMachine.flat(case["ranks"], alpha_s=case["alpha_s"], byte_per_s=case["byte_per_s"])


def _buffer(case: Any, rank: Rank) -> RankTensor:
    return rank.tensor(case["numel"], dtype=case["dtype"], name="buffer")


def _chunk_bytes(case: Any) -> int:
    return -(-case["numel"] // case["ranks"]) * _ITEM_BYTES[case["dtype"]]


def _judge_waiting(run: ClusterReplay) -> None:
    if run.hang is None:
        return
    if all(wait.call.startswith("send") for wait in run.hang.waits):
        then = "start the send with isend, receive, and wait for the send afterwards"
        raise Wrong("in your code, every rank waits until its send is received", why=run.hang.what, next=then)
    if all(wait.call.startswith(("recv", "irecv")) for wait in run.hang.waits):
        raise Wrong(
            "in your code, all waiting ranks wait to receive", why=run.hang.what, next="send before you receive"
        )
    if run.hang.kind == "mismatch":
        then = "both sides must split the buffer in the same way: which chunk is sent in this round?"
        raise Wrong("in your code, a send does not match what the other side receives", why=run.hang.what, next=then)
    raise Wrong("your ranks do not finish", why=f"{run.hang.what}; {run.hang.why}", next=run.hang.next)


def _judge_races(run: ClusterReplay) -> None:
    if not run.races:
        return
    race = run.races[0]
    if race.kind.startswith("read"):
        then = "wait for the send's handle before you change the chunk"
        raise Wrong("your code changes a chunk while it is still being sent", why=str(race), next=then)
    if race.kind == "write, then read":
        then = "call wait() on irecv's handle before you use the data"
        raise Wrong("your code uses a chunk before it has arrived", why=str(race), next=then)
    raise Wrong(
        "two of your operations write to the same place at the same time",
        why=str(race),
        next="wait for the first operation before you start the second one",
    )


def _judge_open_work(case: Any, run: ClusterReplay, machine: ClusterMachine) -> None:
    """The caller may change the buffer at once: nothing still sends or receives a part of it."""
    whole = [[0, 0, case["numel"]]]
    touch = {"op": "scale", "stream": 0, "duration_s": 0.0, "reads": whole, "writes": whole, "factor": 1.0}
    races = replay_cluster([[*program, touch] for program in run.programs], machine).races
    if not races:
        return
    race, then = races[0], "wait for the handle of every isend and irecv, in the second half too"
    if race.kind.startswith("read"):
        raise Wrong("in your code, a send is still unfinished when all_reduce() returns", why=str(race), next=then)
    raise Wrong("in your code, a receive is still unfinished when all_reduce() returns", why=str(race), next=then)


def _judge_sums(case: Any, run: ClusterReplay) -> None:
    every = dict.fromkeys(range(case["ranks"]), 1.0)
    wrong = [
        (rank, part) for rank in range(case["ranks"]) for part in run.contents(rank, 0) if not _is_sum(part, every)
    ]
    if wrong:
        raise _sum_symptom(case, run, *wrong[-1])


def _is_sum(part: ClusterPart, every: dict[int, float]) -> bool:
    return part.ranks == every and all(term.offset == 0 and term.source == "buffer" for term in part.terms)


def _sum_symptom(case: Any, run: ClusterReplay, rank: int, part: ClusterPart) -> Wrong:
    ranks, found = case["ranks"], part.ranks
    place, _, terms = str(part)[:150].partition(" ")
    why = f"at the end, buffer{place} on rank {rank} contains {'the sum of ' * (len(part.terms) > 1)}{terms}"
    if any(term.rank < 0 for term in part.terms):
        return Wrong("your sum contains elements that were never written", why=why, next="receive before you add")
    if any(term.offset for term in part.terms):
        return Wrong(
            "your code adds elements at the wrong positions", why=why, next="which chunk arrives in this round?"
        )
    counts = set(found.values())
    if len(found) == ranks and counts == {1 / ranks}:
        return Wrong("your result is the mean, not the sum", why=why, next="leave the division to the caller")
    if max(counts, default=1.0) > 1:
        then = "add only in the first P - 1 rounds; after that, a finished chunk replaces the old values"
        return Wrong("your sum contains some ranks' elements more than once", why=why, next=then)
    rest = ranks * (case["numel"] // ranks)
    if rest and all(
        _is_sum(one, dict.fromkeys(range(ranks), 1.0)) for one in run.contents(rank, 0) if one.stop <= rest
    ):
        then = "let chunks differ in length by one element: P does not divide every length"
        return Wrong("your code leaves out elements at the end of the buffer", why=why, next=then)
    whole = [any(_is_sum(one, dict.fromkeys(range(ranks), 1.0)) for one in run.contents(at, 0)) for at in range(ranks)]
    if all(len(one.terms) == 1 and set(one.ranks) == {at} for at in range(ranks) for one in run.contents(at, 0)):
        then = "replace these elements with the sum, in place"
        return Wrong("your code leaves only the rank's own elements in the buffer", why=why, next=then)
    if all(whole):
        then = "pass on the finished chunks in P - 1 more rounds"
        return Wrong("in your code, each rank finishes only a part of the sums", why=why, next=then)
    if not any(whole):
        added = sum(part[2] - part[1] for entry in _of(run, "add") for part in entry["writes"])
        if not added:
            then = "receive into separate memory, then add it to the rank's own part with dist.add"
            return Wrong(
                "in your code, received data overwrites the rank's own part",
                why=f"{why}; your code never adds anything",
                next=then,
            )
        if added >= (ranks - 1) * case["numel"]:
            why = f"{why}; in all, {added} elements were added, which is enough for every sum"
            then = "begin the second half with the chunk that this rank has finished: to which one did it add last?"
            return Wrong("your code overwrites finished sums with unfinished ones", why=why, next=then)
        return Wrong(
            "in your code, no chunk visits every rank", why=why, next="how many ranks does a chunk still have to visit?"
        )
    return Wrong(
        "in your code, some ranks get the sum, but others do not",
        why=why,
        next="which rank passes the sum on to the others?",
    )


def _of(run: ClusterReplay, op: str) -> list[Any]:
    return [entry for program in run.programs for entry in program if entry["op"] == op]


def _judge_links(case: Any, run: ClusterReplay) -> None:
    ranks, chunk = case["ranks"], _chunk_bytes(case)
    sent = sorted(use.sent_bytes for use in run.links)
    most = 2 * (ranks - 1) * chunk
    if not sent or sent[-1] <= most:
        return
    whole = case["numel"] * _ITEM_BYTES[case["dtype"]]
    parts = [[part[2] - part[1] for part in entry["reads"]] for entry in _of(run, "send")]
    largest = max((sum(sizes) for sizes in parts), default=0) * _ITEM_BYTES[case["dtype"]]
    if largest <= chunk and len(parts) > 2 * (ranks - 1) * ranks and sent[0] == sent[-1]:
        why = f"a rank sends {len(parts) // ranks} chunks; in a ring it sends 2(P - 1) = {2 * (ranks - 1)}"
        then = "count the rounds of each half: P - 1 to add up, and P - 1 to pass on the finished chunks"
        raise Wrong("your code has more rounds than a ring", why=why, next=then)
    ring = f"in a ring, every rank sends {byte_count(most)}"
    why = f"a rank sends {byte_count(sent[-1])} for a buffer of {byte_count(whole)}; {ring}"
    if sent[0] < sent[-1] and sent[-1] >= (ranks - 1) * whole > 2 * whole:
        then = "let every rank add up one chunk, as in a ring: then all links are busy all the time"
        raise Wrong("in your code, one rank does the work of all ranks", why=why, next=then)
    all_sends_s = sum(sent) / case["byte_per_s"]
    if sent[0] < sent[-1] and run.makespan_s < 0.9 * all_sends_s:
        why = f"{why}; the rank that sends the least sends {byte_count(sent[0])}"
        then = "let every rank send one chunk in every round"
        raise Wrong("in your code, some ranks send more bytes than in a ring", why=why, next=then)
    if sent[0] < sent[-1]:
        then = "cut the buffer into chunks, and let every rank begin with a different chunk"
        raise Wrong("your code passes the buffer from rank to rank, one link at a time", why=why, next=then)
    if largest > chunk:
        then = "send one P-th of the buffer per round, 2(P - 1) times"
        raise Wrong("your code sends more than one chunk in a round", why=why, next=then)
    raise Wrong(
        "in your code, a rank sends more bytes than in a ring",
        why=why,
        next="send one P-th of the buffer, 2(P - 1) times",
    )


def _time_symptom(case: Any, run: ClusterReplay, best_s: float) -> Wrong:
    sends = Counter(rank for rank, program in enumerate(run.programs) for entry in program if entry["op"] == "send")
    why = f"your program takes {seconds(run.makespan_s)}; a ring takes {seconds(best_s)}"
    rounds = 2 * (case["ranks"] - 1)
    if max(sends.values(), default=0) > rounds:
        why += f"; a rank sends {max(sends.values())} messages, each of which costs {seconds(case['alpha_s'])}"
        return Wrong(
            "your code sends more messages than there are rounds",
            why=why,
            next="send one message per round, 2(P - 1) in all",
        )
    then = "let every rank send and receive at the same time: isend(), recv(), then wait()"
    return Wrong("your code leaves links idle for part of the time", why=why, next=then)
