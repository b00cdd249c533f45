"""finish_times: a host and one in-order stream, judged after every operation of a drawn program."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.units import counted


@exercise("finish_times")
class FinishTimes(Exercise):
    """When the host returns and when the device is done, for a program of asynchronous operations.

    `student.finish_times(program, launch_s=)` gives `(host_s, device_s)`; called for every prefix of a program.

    Driving a VirtualGPU is allowed: which of its calls each kind of operation is, what each of them costs and who waits
    for whom must be said operation by operation, and that is the exercise. No single call of it is an answer.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        """An answer for each prefix, up to the one that is not written yet: a stub has no answer at all."""
        program = [tuple(operation) for operation in given["program"]]
        answers: list[Any] = []
        for count in range(len(program) + 1):
            try:
                answers.append(student.finish_times(program[:count], launch_s=given["launch_s"]))
            except NotImplementedError:
                if not answers:
                    raise
                break
        return answers

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if any(len(pair) != 2 for pair in got):
            raise Wrong(
                "expected two times: when the host returns, and when the device is done",
                why="your function did not return two numbers",
                next="return the host's time, then the device's",
            )
        for count, (pair, right) in enumerate(zip(got, want[: len(got)], strict=True)):
            if not _same(pair, right):
                before = want[count - 1] if count else [0.0, 0.0]
                raise _explain(case, count, pair, before=before, right=right)
        if len(got) < len(want):
            raise _unwritten(case, len(got))

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Another unit, or an end that waits, where all answers show it."""
        pairs = [both for ours, theirs in zip(got, want, strict=True) for both in zip(ours, theirs, strict=True)]
        for factor, unit in ((1e6, "microseconds"), (1e3, "milliseconds")):
            if all(_same(pair, [factor * one for one in right]) for pair, right in pairs):
                return Wrong(
                    f"your times are in {unit}", why="every time is right except for its unit", next="return seconds"
                )
        if all(_same(pair, [max(right), right[1]]) for pair, right in pairs):
            return Wrong(
                "in your answer, the host waits for the device at the end of the program",
                why="your device times are right, but your host time is always the later of the two times",
                next="the end of a program is not a sync: when does the host itself finish?",
            )
        return None

    def format_answer(self, case: Any, got: Any) -> str:
        """The last answer in the text's unit: the one for the whole program, unless a part is not written yet."""
        host_s, device_s = got[-1]
        done = len(got) - 1
        after = "the whole program" if done == len(case["program"]) else counted(done, "operation")
        return f"after {after}, host {1e6 * host_s:.1f} µs, device {1e6 * device_s:.1f} µs"

    def format_case(self, case: Any) -> str:
        lines = [f"{i}. {name:<14}{1e6 * seconds:8.1f} µs" for i, (name, seconds) in enumerate(case["program"], 1)]
        return "\n".join([f"launch_s = {1e6 * case['launch_s']:.1f} µs", *lines])


def _same(pair: Any, right: Any) -> bool:
    # A microsecond is the smallest duration here; sums of a dozen of them in any order agree far below 1e-6 of it.
    return all(close(got, want, rtol=1e-6, atol=1e-13) for got, want in zip(pair, right, strict=True))


def _unwritten(case: Any, count: int) -> Wrong:
    name, _ = case["program"][count - 1]
    return Wrong(
        f"your code does not handle a {name} yet",
        why=f"it raised NotImplementedError at operation {count}, a {name}; all earlier times are right",
        next="which of the two clocks does this operation move forward, and to what time?",
    )


def _explain(case: Any, count: int, pair: Any, *, before: Any, right: Any) -> Wrong:
    if count == 0:
        return Wrong(
            "your function returned a time other than 0 for a program without operations",
            why="nothing has been issued, so both times must be 0",
            next="start both clocks at 0.0",
        )
    name, duration_s = case["program"][count - 1]
    what, then = _symptom(name, duration_s, case["launch_s"], pair=pair, before=before, right=right)
    place = f"the first wrong time is after operation {count}, {name!r}; all earlier times are right"
    if count == 1:
        place = f"the time after the very first operation, {name!r}, is already wrong"
    return Wrong(what, why=place, next=then)


def _symptom(name: str, duration_s: float, launch_s: float, *, pair: Any, before: Any, right: Any) -> tuple[str, str]:
    if close(pair[0], right[1]) and close(pair[1], right[0]):
        return "the two times are swapped", "return the host's time first, then the device's"
    own = {"sync": _sync_symptom, "host": _host_symptom}.get(name)
    if own is not None:
        return own(pair, before, right)
    if not close(pair[0], right[0]):
        return _issue_symptom(name, pair, duration_s, before=before, right=right)
    return _queue_symptom(pair, duration_s, before=before, right=right)


def _sync_symptom(pair: Any, before: Any, right: Any) -> tuple[str, str]:
    if not close(pair[1], right[1]):
        return (
            "your code changes the device's time at a sync",
            "a sync only makes the host wait: what happens to the device's time?",
        )
    if pair[0] < before[0]:
        return (
            "your code moves the host's clock back at a sync",
            "what should a sync do if the device was done long before?",
        )
    if pair[0] < right[0]:
        return (
            "in your answer, the host does not wait for the device at a sync",
            "when may the host continue after a sync?",
        )
    return (
        "in your answer, a sync takes too long",
        "a sync has no duration of its own: which two things must have happened before it ends?",
    )


def _host_symptom(pair: Any, before: Any, right: Any) -> tuple[str, str]:
    if not close(pair[1], right[1]):
        return (
            "in your answer, the host's own work changes the device's time",
            "Python code between two launches runs only on the host: what does the device do during it?",
        )
    if close(pair[0], before[0]):
        return "in your answer, the host's own work takes no time", "add its duration to the host's clock"
    return (
        "in your answer, the host's own work takes the wrong time",
        "add only its own duration: this work is neither launched nor queued",
    )


def _issue_symptom(name: str, pair: Any, duration_s: float, *, before: Any, right: Any) -> tuple[str, str]:
    if name == "blocking copy" and _same(pair, [max(before) + duration_s] * 2):
        return (
            "in your answer, issuing a blocking copy takes no time",
            "let the host first spend launch_s on issuing the copy; the device begins after that",
        )
    if name == "blocking copy" and close(*pair):
        return (
            "in your answer, a blocking copy ends at the wrong time",
            "when has the copy been issued, and when has everything before it finished?",
        )
    if name == "blocking copy":
        return (
            "in your answer, the host does not wait for a blocking copy to end",
            "let the host continue only when the data have arrived",
        )
    if close(pair[0], before[0]):
        return (
            "in your answer, issuing an operation takes no time on the host",
            "for how long is the host itself busy with this operation?",
        )
    if pair[0] > right[0] and close(pair[0], pair[1]):
        return (
            f"in your answer, the host waits for a {name}",
            f"a {name} is asynchronous: what does the host do in the meantime?",
        )
    return (
        f"the host's time after a {name} is wrong",
        f"add launch_s to the host's time for a {name}, whatever its own duration is",
    )


def _queue_symptom(pair: Any, duration_s: float, *, before: Any, right: Any) -> tuple[str, str]:
    if close(pair[1], before[1] + duration_s):
        return (
            "in your answer, an operation begins before it was launched",
            "the device was idle: at what time does it learn of this operation?",
        )
    if pair[1] > right[1]:
        return (
            "in your answer, the device begins too late",
            "two things must have happened before the device can begin: which of them happens last?",
        )
    if pair[1] < before[1] + duration_s:
        return (
            "in your answer, two operations of one stream overlap",
            "a stream is a queue: what must have finished before an operation can begin?",
        )
    return (
        "in your answer, the device begins at the wrong time",
        "let it begin when the operation has been issued and the previous one has finished",
    )
