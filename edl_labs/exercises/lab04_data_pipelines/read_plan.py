"""read_plan: what to read, and in which order; plans run on a modelled disk."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.units import byte_count, counted, seconds
from edl_labs.virtual import Disk, LoaderMachine, VirtualWorkers, WorkersReplay, replay_workers

PAGE = 4096  # bytes: Linux's page, and a sector of today's disks
TOLERANCE = 0.01  # promised in the lab's text
_MAX_READS = 5000  # far more than samples are wanted, and still replayed at once


@exercise("read_plan")
class ReadPlan(Exercise):
    """Reads that bring all wanted samples of some shards, near the least time on a modelled disk.

    `student.read_plan(wanted, seek_s=, byte_per_s=)` gives reads `(shard, start, stop)` in order.
    """

    answers = "all"

    answer_form: ClassVar[Any] = [[0, 0, 0]]

    def probe(self, student: Any, given: Any) -> Any:
        wanted = [tuple(part) for part in given["wanted"]]
        plan = student.read_plan(wanted, seek_s=given["seek_s"], byte_per_s=given["byte_per_s"])
        return {str(key): 0 for key in plan} if isinstance(plan, dict) else plan

    def compare(self, case: Any, got: Any, want: Any) -> None:
        _refuse_lengths(case, got)
        _refuse_impossible(case, got)
        _refuse_gaps(case, got)
        best = want if isinstance(want, dict) else figures(run_plan(case, want))
        mine = figures(run_plan(case, got))
        if mine["time_s"] > (1 + TOLERANCE) * best["time_s"]:
            raise _slow_plan(case, got, mine=mine, best=best)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The rule by which samples were joined in every case; a single plan may fit several."""
        joined = [sorted(tuple(read) for read in plan) for plan in got]
        for what, then, rule in _RULES:
            if all(plan == _by_rule(case, rule) for case, plan in zip(cases, joined, strict=True)):
                return Wrong(
                    what, why="your plans are exactly those that this mistake produces, in all cases", next=then
                )
        kinds = {kind for case, plan in zip(cases, joined, strict=True) for kind in _shards_read(case, plan)}
        if kinds == {"whole", "by sample"}:
            return Wrong(
                "your plans read each shard either whole or sample by sample, never anything in between",
                why="none of your plans reads through some gaps of a shard and jumps over others",
                next="decide for each gap separately: is reading it cheaper than one seek?",
            )
        return None

    def format_answer(self, case: Any, got: Any) -> str:
        """The first reads of the plan."""
        more = ", …" if len(got) > 4 else ""
        return f"{counted(len(got), 'read')}: {', '.join(str(tuple(read)) for read in got[:4])}{more}"

    def public_want(self, case: Any, want: Any) -> Any:
        """What the reference's plan costs: the plan itself would be one to copy."""
        return figures(run_plan(case, want))

    def format_case(self, case: Any) -> str:
        parts = ", ".join(str(tuple(part)) for part in case["wanted"][:4])
        return (
            f"{len(case['wanted'])} samples from {len(case['shard_bytes'])} shards on one disk ({case['disk']}): a "
            f"seek takes {seconds(case['seek_s'])}, the disk reads {byte_count(case['byte_per_s'])} per "
            f"second\nwanted: {parts}, …"
        )


def run_plan(case: Any, plan: Any) -> WorkersReplay:
    """What a plan does on the modelled disk of a case: seeks, bytes, time."""
    disk = Disk(case["disk"], seek_s=case["seek_s"], read_byte_per_s=case["byte_per_s"])
    machine = LoaderMachine(disks=(disk,))
    vw = VirtualWorkers(machine)
    files = [vw.file(nbytes) for nbytes in case["shard_bytes"]]
    for shard, start, stop in plan:
        vw.read(files[shard], offset=start, nbytes=stop - start)
    return replay_workers(vw.program, machine)


def figures(run: WorkersReplay) -> dict[str, Any]:
    """The three figures of a plan."""
    return {"time_s": run.host_s, "seeks": run.seeks, "read_bytes": run.disk_bytes}


def _refuse_impossible(case: Any, plan: Any) -> None:
    for read in plan:
        whole = len(read) == 3 and all(type(number) is int for number in read)
        if not whole or not 0 <= read[0] < len(case["shard_bytes"]):
            raise Wrong(
                "one of your reads is not a tuple (shard, start, stop) of whole numbers",
                why=f"the read is {str(read)[:60]}",
                next="give the shard's number as in `wanted`, then the first byte and the byte after the last",
            )
        if not 0 <= read[1] < read[2] <= case["shard_bytes"][read[0]]:
            raise Wrong(
                "one of your reads goes beyond its shard",
                why=f"shard {read[0]} has {case['shard_bytes'][read[0]]:,} bytes; the read is {read[1]} to {read[2]}",
                next="give bytes with 0 <= start < stop; no read has to go beyond the last wanted sample",
            )
    if len(plan) > _MAX_READS:
        raise Wrong(
            "your plan has thousands of reads",
            why=f"it has {len(plan):,}",
            next="combine reads: even one read for each sample would be fewer",
        )


def _refuse_gaps(case: Any, plan: Any) -> None:
    covered: dict[int, list[list[int]]] = {}
    for shard, start, stop in sorted(plan):
        runs = covered.setdefault(shard, [])
        if runs and start <= runs[-1][1]:
            runs[-1][1] = max(runs[-1][1], stop)
        else:
            runs.append([start, stop])
    missing = [
        (shard, start, stop)
        for shard, start, stop in case["wanted"]
        if not any(low <= start and stop <= high for low, high in covered.get(shard, []))
    ]
    if missing:
        where, then = _which_missing(case, plan, missing)
        raise Wrong(
            f"your plan leaves out wanted samples{where}",
            why=f"{len(missing)} of {len(case['wanted'])} are missing; the first of them is {missing[0]}",
            next=then,
        )


def _which_missing(case: Any, plan: Any, missing: list[tuple[int, int, int]]) -> tuple[str, str]:
    """Which samples were never read, where that can be said, and what to look at."""
    unread = sorted({shard for shard, *_ in missing} - {read[0] for read in plan})
    if plan and len(unread) > 1 and all(shard in unread for shard, *_ in missing):
        return (
            f": all those in shards {', '.join(map(str, unread))}",
            "begin a new read where the shard changes: a read cannot continue into another shard",
        )
    last = sorted(tuple(part) for part in case["wanted"])[-len(missing) :]
    if plan and sorted(missing) == last and len({shard for shard, *_ in missing}) == 1:
        return ": the last ones on the disk", "after the last sample, do you append the last read to your list too?"
    return "", "make sure that every byte of every wanted sample is in one of the reads"


def _refuse_lengths(case: Any, plan: Any) -> None:
    """A plan that is impossible as it stands, and whole if its third numbers are lengths."""
    try:
        _refuse_impossible(case, plan)
        _refuse_gaps(case, plan)
    except Wrong:
        if any(len(read) != 3 for read in plan):
            return
        meant = [[shard, start, start + length] for shard, start, length in plan]
        try:
            _refuse_impossible(case, meant)
            _refuse_gaps(case, meant)
        except Wrong:
            return
        shard, start, length = plan[0]
        raise Wrong(
            "in your reads, the third number is the length instead of the stop",
            why=f"({shard}, {start}, {length}) reads up to byte {length}; with stops such as {start + length} here, "
            "every wanted sample would be read",
            next="give (shard, start, stop), in the same form as the wanted samples",
        ) from None


# Of a read so far, where it starts, where its last sample does, and where it stops; of the next sample, its start and
# stop; and of the disk, how many bytes it reads in the time of a seek: are the two joined?
_Rule = Callable[[int, int, int, int, int, float], bool]
_SEEK = "how many bytes does the disk read in the time of one seek? A shorter gap is cheaper to read than to jump"
_WORTH = (
    "compare each gap with seek_s * byte_per_s, the bytes that the disk reads in the time of one seek: a shorter gap "
    "is cheaper to read; seek_s / byte_per_s is about 0, and is not a number of bytes"
)
_GAP = "measure a gap from where one sample stops to where the next one starts"
_RULES: tuple[tuple[str, str, _Rule], ...] = (
    (
        "your plans do not read through any gap: they join only adjacent samples",
        _WORTH,
        lambda first, last, end, start, stop, worth: start <= end,
    ),
    (
        "your plans read through large gaps, and jump over small ones",
        _SEEK,
        lambda first, last, end, start, stop, worth: start - end >= worth,
    ),
    (
        "your code measures a gap from the start of the read before it",
        _GAP,
        lambda first, last, end, start, stop, worth: start - first <= worth,
    ),
    (
        "your code measures a gap from the start of the sample before it",
        _GAP,
        lambda first, last, end, start, stop, worth: start - last <= worth,
    ),
    (
        "your code measures a gap to the stop of the sample after it",
        _GAP,
        lambda first, last, end, start, stop, worth: stop - end <= worth,
    ),
    (
        "your code compares a gap with the sample after it, not with a seek of this disk",
        _SEEK,
        lambda first, last, end, start, stop, worth: start - end <= stop - start,
    ),
    (
        "your code compares a gap with the sample before it, not with a seek of this disk",
        _SEEK,
        lambda first, last, end, start, stop, worth: start - end <= end - last,
    ),
)


def _by_rule(case: Any, rule: _Rule) -> list[tuple[int, int, int]]:
    """The plan of somebody who joins neighbours by this rule, in the order of the disk."""
    worth = case["seek_s"] * case["byte_per_s"]
    reads: list[list[int]] = []
    last = 0
    for shard, start, stop in sorted(map(tuple, case["wanted"])):
        if reads and reads[-1][0] == shard and rule(reads[-1][1], last, reads[-1][2], start, stop, worth):
            reads[-1][2] = max(reads[-1][2], stop)
        else:
            reads.append([shard, start, stop])
        last = start
    return [(shard, start, stop) for shard, start, stop in reads]


def _shards_read(case: Any, plan: list[tuple[int, int, int]]) -> Iterator[str]:
    """How a plan reads each shard that has gaps: "whole", "by sample", or "else"."""
    for shard in sorted({shard for shard, _, _ in case["wanted"]}):
        parts = sorted(tuple(part) for part in case["wanted"] if part[0] == shard)
        whole = [(shard, parts[0][1], max(stop for _, _, stop in parts))]
        if any(one[2] < other[1] for one, other in itertools.pairwise(parts)):
            own = [read for read in plan if read[0] == shard]
            yield "whole" if own == whole else "by sample" if own == parts else "else"


def _slow_plan(case: Any, plan: Any, *, mine: dict[str, Any], best: dict[str, Any]) -> Wrong:
    slower = f"your plan takes {seconds(mine['time_s'])}, but {seconds(best['time_s'])} would be enough"
    known = _known_plan(case, plan)
    if known:
        what, then = known
        return Wrong(what, why=f"with {mine['seeks']} seeks for {byte_count(mine['read_bytes'])}, {slower}", next=then)
    if mine["seeks"] > best["seeks"] and mine["read_bytes"] <= best["read_bytes"]:
        return Wrong(
            "your plan jumps over gaps that it should read",
            why=f"with {mine['seeks']} seeks for {byte_count(mine['read_bytes'])}, {slower}",
            next="in which order are the bytes stored on the disk, and when is a gap cheaper to read than to jump "
            "over?",
        )
    if mine["read_bytes"] > best["read_bytes"] and mine["seeks"] <= best["seeks"]:
        return Wrong(
            "your plan reads unwanted data",
            why=f"with {mine['seeks']} seeks for {byte_count(mine['read_bytes'])}, {slower}",
            next="how many bytes does the disk read in the time of one seek? A longer gap is cheaper to jump over",
        )
    return Wrong(
        "a different plan is faster",
        why=f"with {mine['seeks']} seeks for {byte_count(mine['read_bytes'])}, {slower}",
        next="for each gap, work out the cost of reading it and the cost of jumping over it; choose the cheaper way",
    )


def _known_plan(case: Any, plan: Any) -> tuple[str, str] | None:
    """What is wrong with a plan of a kind that can be seen, and what to look at."""
    reads, wanted = [tuple(read) for read in plan], [tuple(part) for part in case["wanted"]]
    inside = {shard: [start for at, start, _ in reads if at == shard] for shard, _, _ in reads}
    if any(starts != sorted(starts) for starts in inside.values()):
        return (
            "your plan does not read in the order of the disk",
            "in which order are the bytes of a shard stored there?",
        )
    turns = sum(one[0] != other[0] for one, other in itertools.pairwise(reads))
    if turns >= len(inside):
        return (
            "your reads go back and forth between the shards",
            "each change of shard is a seek: in which order are the bytes stored on the disk?",
        )
    if len(reads) == len(set(wanted)):
        return "your plan reads every sample separately", "when is a gap cheaper to read than to jump over?"
    if len(reads) == len(inside):
        return (
            "your plan reads unwanted data: it reads each shard in one go",
            "how many bytes does the disk read in the time of one seek?",
        )
    return None
