"""self_times and read_a_sampler: nested profiler rows and stack samples, drawn as trees of calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from edl_labs.checks import Exercise, close, exercise
from edl_labs.checks.asked_form import in_form
from edl_labs.checks.evidence_form import answer_text
from edl_labs.errors import Wrong
from edl_labs.exercises.lab05_profiling.misread_rows import known_difficulty, known_rule, tried
from edl_labs.exercises.lab05_profiling.misread_samples import header_of_the_window, known_reading
from edl_labs.units import seconds

# Cases of so few samples are shown whole.
_FEW = 10


_OF_A_ROW = ("own", "total", "own_s", "total_s")
_ROWS = dict[Literal["rows"], dict[str, dict[Literal[_OF_A_ROW], Any]]]  # type: ignore[valid-type]
_SCREEN = dict[Literal["active", "gil", "rows"], Any]


@exercise("self_times")
class SelfTimes(Exercise):
    """Self time by name from nested rows of two threads, and the device on which an operator really ran.

    `self_times(rows)` gives seconds by name; `ran_on(entry, cpu_flop_per_s=)` says which device did the work.
    """

    answers = ("self", "ran")

    returns: ClassVar[Mapping[str, Any]] = {"self_times": dict}

    def probe(self, student: Any, given: Any) -> Any:
        times = student.self_times([dict(row) for row in given["rows"]])
        ran = [student.ran_on(dict(entry), cpu_flop_per_s=given["cpu_flop_per_s"]) for entry in given["entries"]]
        times = sorted([name, times[name]] for name in times)
        return {"self": times, "ran": ran, "tried": tried(student, given["rows"])}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        mine, rights = dict(map(tuple, got["self"])), dict(map(tuple, want["self"]))
        if set(mine) != set(rights):
            odd = sorted(set(mine) ^ set(rights))[0]
            raise Wrong(
                f"your table is missing a name, or has an extra one: {odd[:40]}",
                why="every name that occurs in the rows must have one entry",
                next="add up the self times of all rows with the same name",
            )
        wrong = _wrong_names(got, want)
        if wrong:
            raise _self_time_symptom(case, mine, rights, name=wrong[0])
        for entry, said, right in zip(case["entries"], got["ran"], want["ran"], strict=False):
            if said != right:
                raise _device_symptom(entry, str(said), right, peak=case["cpu_flop_per_s"])
        if len(got["ran"]) != len(want["ran"]):
            raise Wrong(
                "your `ran_on()` did not answer for every operator",
                why="each operator needs one answer",
                next='return "cpu" or "gpu" for each operator',
            )

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The difficulty of the rows that was not met, or the rule that was followed for ran_on, in all cases."""
        if any(_wrong_names(mine, right) for mine, right in zip(got, want, strict=True)):
            return known_difficulty(cases, got, want)
        return known_rule(cases, got, want)

    def format_answer(self, case: Any, got: Any) -> str:
        """Both answers."""
        return answer_text({"self_times": dict(map(tuple, got["self"])), "ran_on": got["ran"]})

    def format_case(self, case: Any) -> str:
        rows = sorted(case["rows"], key=lambda row: (row["thread"], row["start_s"], -row["end_s"]))
        lines = [
            f"  {row['thread']:<9}{1e6 * row['start_s']:9.3f} to {1e6 * row['end_s']:9.3f} µs  {row['name']}"
            for row in rows
        ]
        asked = [f"  flop {e['flop']:<9.3g} cpu_s {e['cpu_s']:<9.3g} cuda_s {e['cuda_s']:.3g}" for e in case["entries"]]
        head = f"ran_on, with cpu_flop_per_s = {case['cpu_flop_per_s']:.3g}:"
        return "\n".join([head, *asked, "self_times, rows (your function gets them shuffled):", *lines])


@exercise("read_a_sampler")
class ReadASampler(Exercise):
    """Own and total shares of the window, own and total seconds of the run, from stack samples.

    `sampler_table(samples, rate_hz=, window=)` gives shares of the window and seconds of the run for each frame.
    """

    answers = "all"

    returns: ClassVar[Mapping[str, Any]] = {"sampler_table": _SCREEN}

    def probe(self, student: Any, given: Any) -> Any:
        samples = [{**sample, "stack": list(sample["stack"])} for sample in given["samples"]]
        table = student.sampler_table(samples, rate_hz=given["rate_hz"], window=given["window"])
        rows = in_form({"rows": table["rows"]}, _ROWS)["rows"]
        listed = sorted([frame, *(rows[frame][column] for column in _OF_A_ROW)] for frame in rows)
        return {"active": table["active"], "gil": table["gil"], "rows": listed}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        mine, rights = ({row[0]: row[1:] for row in side["rows"]} for side in (got, want))
        if set(mine) != set(rights):
            raise Wrong(
                "your rows are not the frames of the active samples",
                why="a frame needs a row if it is on a stack that was sampled while the thread was active",
                next="go through all frames on the stacks of the active samples, and make a row for every name",
            )
        same_totals = all(close(mine[frame][1], right[1], rtol=1e-6, atol=1e-12) for frame, right in rights.items())
        for frame, right in rights.items():
            for place, column in enumerate(("own", "total", "own_s", "total_s")):
                if not close(mine[frame][place], right[place], rtol=1e-6, atol=1e-12):
                    said = mine[frame][place]
                    shares = _share_symptom(case, frame, column, said=said, right=right[place], same_totals=same_totals)
                    raise shares or _sampler_symptom(case, frame, column, said=said, rights=right)
        for key in ("active", "gil"):
            if not close(got[key], want[key], rtol=1e-6, atol=1e-12):
                raise Wrong(
                    f"your share {key!r} should not be {answer_text(got[key])}",
                    why="the header gives shares of all samples of the run, including idle ones",
                    next="divide by the number of all samples",
                )

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What the rows of all cases have in common, or their headers."""
        return known_reading(cases, got, want) or header_of_the_window(cases, got, want)

    def format_case(self, case: Any) -> str:
        idle = sum(sample["idle"] for sample in case["samples"])
        head = (
            f"{len(case['samples'])} samples at {case['rate_hz']} Hz, {idle} of them idle; the window is the last "
            f"{case['window']} samples"
        )
        if len(case["samples"]) > _FEW:
            return f"{head}; the last stack is {' > '.join(case['samples'][-1]['stack'])}"
        marks = [("idle " if s["idle"] else "") + ("gil " if s["gil"] else "") for s in case["samples"]]
        stacks = [" > ".join(sample["stack"]) for sample in case["samples"]]
        return "\n".join([f"{head}:", *(f"  {mark:<5}{stack}" for mark, stack in zip(marks, stacks, strict=True))])


def _wrong_names(got: Any, want: Any) -> list[str]:
    mine = dict(map(tuple, got["self"]))
    return [name for name, right in want["self"] if not close(mine.get(name), right, rtol=1e-6, atol=1e-12)]


def _totals(case: Any) -> dict[str, float]:
    totals: dict[str, float] = {}
    for row in case["rows"]:
        totals[row["name"]] = totals.get(row["name"], 0.0) + row["end_s"] - row["start_s"]
    return totals


def _self_time_symptom(case: Any, mine: Any, rights: Any, *, name: str) -> Wrong:
    said = mine[name]
    for factor, unit in ((1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")):
        if all(close(mine[one], factor * right, rtol=1e-6) for one, right in rights.items()):
            why = f"for {name}, expected {rights[name]:.4g} s, got {said:.4g}"
            return Wrong(f"your self times are in {unit}", why=why, next="return seconds, the unit of the rows")
    if any(type(value) in (int, float) and value < 0 for value in mine.values()):
        worst = min((n for n in mine if type(mine[n]) in (int, float)), key=mine.__getitem__)
        return Wrong(
            f"your self time of {worst} is negative",
            why="either a later row of that name replaced an earlier one, or your code subtracted time that is not "
            f"directly inside it: {', or '.join(_taken_off(case))}",
            next="subtract only the rows of its own thread that are directly inside it",
        )
    if close(said, _totals(case)[name], rtol=1e-6):
        return Wrong(
            f"{name} has its total time instead of its self time in your answer",
            why="the time of its callees is counted twice: in its own row, and again in their rows",
            next="subtract the time of the rows directly inside it",
        )
    have, should = (sum(v for v in side.values() if type(v) in (int, float)) for side in (mine, rights))
    if not close(have, should, rtol=1e-6):
        return Wrong(
            "your self times do not add up to the busy time of the threads",
            why=f"they add up to {seconds(have)}, but the outermost rows add up to {seconds(should)}",
            next="check two cases: a row can only be inside a row of its own thread, and a name may repeat, even "
            "inside itself",
        )
    return Wrong(
        f"{said!r} s is not the self time of {name}",
        why="the sum over all names is right, so time of one name was given to another",
        next="find each row's parent: the shortest row of its thread that contains it completely",
    )


_NO_FLOP = "compare the two columns: 0 FLOPs take no time on any CPU, so the CPU's speed proves nothing here"


def _taken_off(case: Any) -> list[str]:
    """What can have been taken for a child in this case, and is none."""
    rows = case["rows"]
    spans = [(row["thread"], row["start_s"], row["end_s"]) for row in rows]
    ends = {(thread, end_s) for thread, _, end_s in spans}
    found = [
        (_has_grandchildren(spans), "a grandchild, which is already included in its own parent"),
        (len({row["thread"] for row in rows}) > 1, "a row of the other thread"),
        (any((thread, start_s) in ends for thread, start_s, _ in spans), "a row that begins exactly when it ends"),
        (spans != sorted(spans), "a row that only follows it in the list, whose order is arbitrary"),
    ]
    return [text for applies, text in found if applies]


def _has_grandchildren(spans: list[tuple[str, float, float]]) -> bool:
    """Whether some row lies inside two others of its thread."""
    return any(
        sum(one != other and one[0] == other[0] and other[1] <= one[1] and one[2] <= other[2] for other in spans) > 1
        for one in spans
    )


def _device_symptom(entry: Any, said: str, right: str, *, peak: float) -> Wrong:
    columns = ", ".join(f"{key} {entry[key]:.3g}" for key in ("flop", "cpu_s", "cuda_s"))
    rate = f"{columns}, cpu_flop_per_s {peak:.3g}"
    if said not in ("cpu", "gpu"):
        return Wrong(f"{said[:30]!r} is not a device", why='the devices are "cpu" and "gpu"', next="return one of them")
    apart, bound = abs(entry["cuda_s"] - entry["cpu_s"]), 0.05
    if (apart <= bound * entry["cuda_s"]) != (apart <= bound * entry["cpu_s"]):
        then = "compare the difference with 0.05 * cpu_s"
        why = f"the limit is 5 % of cpu_s: {rate}"
        return Wrong("your code computes the 5 % from the wrong column", why=why, next=then)
    if right == "cpu":
        return Wrong(
            "your code assigns an operator that never left the CPU to the GPU",
            why=f"a CUDA column alone proves nothing: {rate}",
            next="when are the two columns two readings of the same wall clock?" if entry["flop"] else _NO_FLOP,
        )
    return Wrong(
        "your code assigns an operator that ran on the GPU to the CPU",
        why=f"the CPU's peak or the two columns show that it ran on the GPU: {rate}",
        next="could the CPU have been that fast at all? Check this first" if entry["flop"] else _NO_FLOP,
    )


def _share_symptom(case: Any, frame: str, column: str, *, said: Any, right: float, same_totals: bool) -> Wrong | None:
    """A share of the wrong samples, or in another unit; None where it is none of these."""
    window, samples = case["window"], case["samples"]
    if column not in ("own", "total") or type(said) not in (int, float):
        return None
    why = f"got {said:.4g} for `{column}` of {frame}"
    if right and close(said, 100 * right):
        return Wrong("your shares are percentages", why=why, next="return a fraction of at most 1")
    active = sum(not sample["idle"] for sample in samples[-window:])
    if active and close(said, right * window / active):
        what = "your code divides the shares by the number of active samples only"
        return Wrong(what, why=why, next="divide by all samples of the window, including idle ones")
    outermost = sum(sample["stack"][0] == frame for sample in samples[-window:] if not sample["idle"])
    if column == "own" and same_totals and close(said, outermost / window):
        return None  # whoever reads the stacks of the right window from the wrong end is told so
    first = [sample["stack"] for sample in samples[:window] if not sample["idle"]]
    seen = sum(stack[-1] == frame if column == "own" else frame in stack for stack in first)
    if close(said, seen / window):
        return Wrong(
            "your code takes the window from the first samples, not from the last",
            why=why,
            next=f"use the last {window} samples",
        )
    return None


def _sampler_symptom(case: Any, frame: str, column: str, *, said: Any, rights: Any) -> Wrong:
    _, _, own_s, total_s = rights
    stacks = [sample["stack"] for sample in case["samples"] if not sample["idle"]]
    window = case["window"]
    recent = [sample["stack"] for sample in case["samples"][-window:] if not sample["idle"]]
    roots = {"own": sum(stack[0] == frame for stack in recent) / window}
    roots["own_s"] = sum(stack[0] == frame for stack in stacks) / case["rate_hz"]
    if column in roots and close(said, roots[column], atol=1e-12):
        return Wrong(
            f"in your rows, the own time of {frame} comes from the wrong end of the stack",
            why="a sample counts as own time of only one frame, the one that was running",
            next="which frame is running, if the outermost frame comes first?",
        )
    repeated = sum(stack.count(frame) for stack in stacks) / case["rate_hz"]
    if column == "total_s" and close(said, repeated) and not close(repeated, total_s):
        return Wrong(
            f"your total time of {frame} counts some samples twice",
            why="the function is on some stacks twice, since it calls itself, but each sample is only one tick of time",
            next="count a sample once for each different frame on its stack",
        )
    whole = {"own": own_s, "total": total_s}.get(column)
    if whole is not None and close(said, whole * case["rate_hz"] / len(case["samples"])):
        return Wrong(
            f"your share of {frame} covers the whole run",
            why="shares cover only the window, which is the last samples; `own_s` and `total_s` cover the whole run",
            next=f"use only the last {window} samples for `own` and `total`",
        )
    return Wrong(
        f"your `{column}` of {frame} is wrong",
        why=f"got {answer_text(said)}; {_COLUMNS[column]}",
        next="count by hand for this one frame, in the stacks of active samples",
    )


_COLUMNS = {
    "own": "it is the share of the window's samples in which this frame is the one that runs",
    "total": "it is the share of the window's samples that have the frame on their stack",
    "own_s": "it is the number of samples of the run in which this frame is the one that runs, divided by the rate",
    "total_s": "it is the number of samples of the run that have the frame on their stack, divided by the rate",
}
