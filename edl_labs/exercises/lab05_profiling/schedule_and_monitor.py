"""schedule_states and utilisation_lies: what a profiler records at a step, and what a monitor says about a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab05_profiling.wrong_cycles import STATES, known_layout
from edl_labs.units import seconds


@exercise("schedule_states")
class ScheduleStates(Exercise):
    """What a scheduled profiler does at each step: nothing, warm up, record, or record and save.

    `schedule_states(steps, wait=, warmup=, active=, repeat=, skip_first=, stretch=)` gives the state at each step.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        options = {name: value for name, value in given.items() if name != "steps"}
        return student.schedule_states(given["steps"], **options)

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if len(got) != len(want):
            raise Wrong(
                f"{len(want)} steps must have {len(want)} states, not {len(got)}",
                why="each step has exactly one state",
                next="return one state for each step, starting with step 0",
            )
        for step, (said, right) in enumerate(zip(got, want, strict=True)):
            if said != right and not case["repeat"] and set(got) == {"none"}:
                why = f"all of your {len(got)} states are 'none'"
                raise Wrong(
                    "your code treats `repeat=0` as no cycle at all",
                    why=why,
                    next="how many cycles does `repeat=0` ask for?",
                )
            if said != right:
                raise _schedule_symptom(case, step, str(said), want)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The other rule by which all cycles were laid out."""
        return known_layout(cases, got, want)

    def format_case(self, case: Any) -> str:
        return ", ".join(f"{name}={value}" for name, value in case.items())


@exercise("utilisation_lies")
class UtilisationLies(Exercise):
    """The monitor's utilisation, and the share of SMs that are at work, from a timeline of kernels.

    `utilisation(kernels, sm_count=, window_s=)` gives nvidia-smi's figure and the share of SMs at work.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        kernels = [dict(kernel) for kernel in given["kernels"]]
        return student.utilisation(kernels, sm_count=given["sm_count"], window_s=given["window_s"])

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if len(got) != 2:
            raise Wrong(
                "your function must return two shares",
                why=f"the number of returned values is {len(got)}",
                next="return the utilisation first, then the SMs' share",
            )
        if not close(got[0], want[0], rtol=1e-6):
            raise _utilisation_symptom(case, got[0])
        if not close(got[1], want[1], rtol=1e-6):
            raise _sm_symptom(case, got, want)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What was done to both shares, or another formula for one of them, that all answers follow."""
        if any(len(one) != 2 for one in got):
            return None
        if _follow(got, [[right[1], right[0]] for right in want], want):
            why = "both shares are right, but swapped"
            return Wrong(
                "your function returned the two shares in the wrong order",
                why=why,
                next="return the utilisation first, then the SMs' share",
            )
        if _follow(got, [[100 * share for share in right] for right in want], want):
            return Wrong(
                "your function returned percentages",
                why="both values are 100 times the right share",
                next="return shares from 0 to 1",
            )
        for place, formula, sentences in _OTHER_SHARES:
            expected = [[formula(case, right)] for case, right in zip(cases, want, strict=True)]
            if _follow([[one[place]] for one in got], expected, [[right[place]] for right in want]):
                what, why, then = sentences
                return Wrong(what, why=why, next=then)
        return None

    def format_case(self, case: Any) -> str:
        lines = [
            f"  {seconds(k['start_s'])} to {seconds(k['end_s'])}: {k['blocks']} blocks" for k in case["kernels"][:8]
        ]
        more = len(case["kernels"]) - 8
        head = f"{case['sm_count']} SMs, a window of {seconds(case['window_s'])}"
        return "\n".join([head, *lines, *([f"  and {more} more"] if more > 0 else [])])


def _follow(got: list[Any], expected: list[list[float]], want: list[Any]) -> bool:
    """Whether all answers are the expected ones, and these are not right anyway."""

    def same(ours: list[Any], theirs: list[Any]) -> bool:
        pairs = [both for one, other in zip(ours, theirs, strict=True) for both in zip(one, other, strict=True)]
        return all(close(one, other, rtol=1e-6) for one, other in pairs)

    return same(got, expected) and not same(expected, want)


def _length_s(kernel: Any) -> float:
    return float(kernel["end_s"] - kernel["start_s"])


def _first_to_last(case: Any, want: Any) -> float:
    starts_s, ends_s = zip(*((kernel["start_s"], kernel["end_s"]) for kernel in case["kernels"]), strict=True)
    return float((max(ends_s) - min(starts_s)) / case["window_s"])


def _in_order_of_list(case: Any, want: Any) -> float:
    busy_s = until_s = 0.0
    for kernel in case["kernels"]:
        busy_s += max(0.0, kernel["end_s"] - max(kernel["start_s"], until_s))
        until_s = max(until_s, kernel["end_s"])
    return float(busy_s / case["window_s"])


def _ended_by_a_kernel_inside(case: Any, want: Any) -> float:
    busy_s = until_s = 0.0
    for kernel in sorted(case["kernels"], key=lambda kernel: kernel["start_s"]):
        busy_s += max(0.0, kernel["end_s"] - max(kernel["start_s"], until_s))
        until_s = kernel["end_s"]
    return float(busy_s / case["window_s"])


def _without_waves(case: Any, want: Any) -> float:
    sm_s = sum(_length_s(kernel) * kernel["blocks"] for kernel in case["kernels"])
    return float(sm_s / (case["sm_count"] * case["window_s"]))


def _rounded_waves(case: Any, want: Any) -> float:
    waves = [max(1, round(kernel["blocks"] / case["sm_count"])) for kernel in case["kernels"]]
    sm_s = sum(_length_s(kernel) * kernel["blocks"] / n for kernel, n in zip(case["kernels"], waves, strict=True))
    return float(sm_s / (case["sm_count"] * case["window_s"]))


def _places(blocks: int, sm_count: int) -> int:
    return -(-blocks // sm_count) * sm_count


def _plain_mean(case: Any, want: Any) -> float:
    shares = [kernel["blocks"] / _places(kernel["blocks"], case["sm_count"]) for kernel in case["kernels"]]
    return float(sum(shares) / len(shares))


def _plain_mean_while_busy(case: Any, want: Any) -> float:
    return _plain_mean(case, want) * float(want[0])


def _blocks_together(case: Any, want: Any) -> float:
    blocks = sum(kernel["blocks"] for kernel in case["kernels"])
    return float(blocks / _places(blocks, case["sm_count"]) * want[0])


_MEAN = (
    "your function gives a short kernel the same weight as a long one",
    "your function returned the plain mean of the kernels' shares",
    "weight each kernel's share by its duration, which gives SM-seconds",
)
# What is computed in place of the utilisation (0) or of the SMs' share (1), from the case and the right answer.
_OTHER_SHARES: tuple[tuple[int, Callable[[Any, Any], float], tuple[str, str, str]], ...] = (
    (
        0,
        _first_to_last,
        (
            "your function counts the pauses between kernels as busy",
            "your utilisation covers all the time from the first start to the last end",
            "add up only the time in which a kernel runs: between two kernels, there may be a pause",
        ),
    ),
    (
        0,
        _in_order_of_list,
        (
            "your function goes through the kernels in the order of the list",
            "the order of the list is arbitrary: a kernel that starts earlier may come later in it",
            "sort the kernels by their start",
        ),
    ),
    (
        0,
        _ended_by_a_kernel_inside,
        (
            "in your function, a short kernel inside a longer one ends the busy stretch",
            "your code keeps the end of the kernel that started last, although an earlier one is still running",
            "until when is the device busy if the previous kernel ends later than this one?",
        ),
    ),
    (
        1,
        _without_waves,
        (
            "your function counts more working SMs than the device has",
            "it counts each block as one working SM for the whole duration of its kernel",
            "a kernel with more blocks than SMs runs in waves: how many of its blocks run at the same time?",
        ),
    ),
    (
        1,
        _rounded_waves,
        (
            "your function rounds the number of waves to the nearest integer",
            "blocks that are left over need a wave of their own, however few they are",
            "round the number of waves up",
        ),
    ),
    (1, _plain_mean, _MEAN),
    (1, _plain_mean_while_busy, _MEAN),
    (
        1,
        _blocks_together,
        (
            "your function combines the blocks of all kernels into common waves",
            "each kernel runs in its own waves, and has its own empty places in the last one",
            "count the waves of each kernel separately, and weight its share by its duration",
        ),
    ),
)


def _schedule_symptom(case: Any, step: int, said: str, want: list[str]) -> Wrong:
    right, saved = want[step], [number for number, state in enumerate(want) if state == STATES[-1]]
    place = f"step {step} is {said[:30]!r}; all earlier steps are right"
    if said not in STATES:
        return Wrong(
            f"{said[:30]!r} is not a state",
            why=f"the states are {', '.join(STATES)}",
            next="return one of these words for each step",
        )
    if {said, right} == {"record", "record and save"}:
        return Wrong(
            "your code confuses recording steps with the step that ends a recording",
            why=place,
            next="at which one step of each cycle is the trace saved?",
        )
    start, is_over = case["skip_first"], len(saved) == case["repeat"] and step > saved[-1]
    if step < start or (said != "none" and is_over):
        return Wrong(
            "in your list, the profiler is active in steps in which it should be idle",
            why=place,
            next="return 'none' in the first skip_first steps, and after the last cycle: which of the two is this "
            "step?",
        )
    is_later = bool(saved) and step > saved[0]
    if case["stretch"] > 1 and case["wait"] and is_later:
        then = "make each cycle wait `stretch` times as long as the previous one; the first waits `wait` steps"
        return Wrong("in your list, a later cycle waits too long or not long enough", why=place, next=then)
    if said == "none" and not case["repeat"] and is_later:
        return Wrong(
            "in your list, the cycles end, but `repeat` is 0",
            why=place,
            next="how many cycles does `repeat=0` ask for?",
        )
    if start and is_later:
        return Wrong(
            "in your list, a later cycle is shifted",
            why=place,
            next="apply skip_first only before the first cycle, and count all cycles from there",
        )
    return Wrong(
        "one of your states is wrong", why=place, next="where in its cycle is this step: waiting, warming up or active?"
    )


def _utilisation_symptom(case: Any, said: Any) -> Wrong:
    added = sum(kernel["end_s"] - kernel["start_s"] for kernel in case["kernels"])
    if close(said, added / case["window_s"]):
        return Wrong(
            "your utilisation counts time twice when two kernels run at once",
            why=f"their durations add up to {seconds(added)}, in a window of {seconds(case['window_s'])}",
            next="count the time in which any kernel runs, however many run at once",
        )
    return Wrong(
        f"{said!r} is not the utilisation",
        why="it is the share of the window in which at least one kernel runs",
        next="join intervals that overlap, add up their lengths, and divide by the window",
    )


def _sm_share_with_a_wave_more(case: Any) -> float:
    sm_count = case["sm_count"]
    sm_s = sum(
        (kernel["end_s"] - kernel["start_s"]) * kernel["blocks"] / (kernel["blocks"] // sm_count + 1)
        for kernel in case["kernels"]
    )
    return float(sm_s / (sm_count * case["window_s"]))


def _sm_symptom(case: Any, got: Any, want: Any) -> Wrong:
    full = sum(
        (kernel["end_s"] - kernel["start_s"]) * min(1.0, kernel["blocks"] / case["sm_count"])
        for kernel in case["kernels"]
    )
    if close(got[1], full / case["window_s"]):
        return Wrong(
            "your function counts a last wave that is not full as full",
            why="a kernel with more blocks than SMs runs in waves, and the last wave may have empty places",
            next="how many waves are there, and how many places do they have in all?",
        )
    if close(got[1], _sm_share_with_a_wave_more(case)):
        return Wrong(
            "your function adds an empty wave after blocks that fill their last wave exactly",
            why=f"{case['sm_count']} blocks on {case['sm_count']} SMs are one wave, not two",
            next="round the number of waves up; do not round it down and add one",
        )
    if close(got[1] * got[0], want[1]):
        return Wrong(
            "your function divides the SMs' share by the busy time, not by the window",
            why="while no kernel runs, no SM works either, and that time counts too",
            next="divide by the length of the window",
        )
    return Wrong(
        "your share of SMs at work is wrong",
        why=f"got {got[1]!r}; it is the SM-seconds at work divided by the SM-seconds in the window",
        next="for each kernel, multiply its duration by the average number of SMs that run one of its blocks",
    )
