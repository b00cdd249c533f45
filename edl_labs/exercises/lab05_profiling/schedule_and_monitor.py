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
                f"{len(want)} steps have {len(want)} states, not {len(got)}",
                why="each step has one",
                next="return one state for each step, from step 0 on",
            )
        for step, (said, right) in enumerate(zip(got, want, strict=True)):
            if said != right and not case["repeat"] and set(got) == {"none"}:
                why = f"none of {len(got)} steps is anything but 'none'"
                raise Wrong("repeat=0 was taken as no cycle at all", why=why, next="what does 0 mean?")
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
                "two shares are wanted",
                why="one came back, or three",
                next="return the utilisation, then the SMs' share",
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
            why = "both shares are right, in the wrong order"
            return Wrong(
                "the two shares came back swapped", why=why, next="return the utilisation, then the SMs' share"
            )
        if _follow(got, [[100 * share for share in right] for right in want], want):
            return Wrong("per cent came back", why="both are right, times 100", next="return shares, from 0 to 1")
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
    "a short kernel weighs as much as a long one",
    "the plain mean of the kernels' own shares came back",
    "weigh each kernel's share with its length: SM-seconds",
)
# What is computed in place of the utilisation (0) or of the SMs' share (1), from the case and the right answer.
_OTHER_SHARES: tuple[tuple[int, Callable[[Any, Any], float], tuple[str, str, str]], ...] = (
    (
        0,
        _first_to_last,
        (
            "the pauses between kernels were counted as busy",
            "all the time from the first start to the last end was taken",
            "between two kernels nothing may run: add up only time in which a kernel runs",
        ),
    ),
    (
        0,
        _in_order_of_list,
        (
            "the kernels were taken in the order of the list",
            "the list is in no order; one that starts earlier may come later in it",
            "go through the kernels by their start",
        ),
    ),
    (
        0,
        _ended_by_a_kernel_inside,
        (
            "a short kernel inside a longer one ended the busy stretch",
            "the end of the kernel that started last was kept, though an earlier one still ran",
            "until when is the device busy, if the kernel before ends later than this one?",
        ),
    ),
    (
        1,
        _without_waves,
        (
            "more SMs were counted as working than the device has",
            "each block counted as an SM for the whole length of its kernel",
            "a kernel with more blocks than SMs runs in waves: how many of its blocks run at once?",
        ),
    ),
    (
        1,
        _rounded_waves,
        (
            "the number of waves was rounded to the nearest",
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
            "the blocks of all kernels were put together into common waves",
            "each kernel runs in waves of its own, and its last one has empty places of its own",
            "count waves for each kernel, and weigh it with its length",
        ),
    ),
)


def _schedule_symptom(case: Any, step: int, said: str, want: list[str]) -> Wrong:
    right, saved = want[step], [number for number, state in enumerate(want) if state == STATES[-1]]
    place = f"step {step} is {said[:30]!r}; the steps before it are right"
    if said not in STATES:
        return Wrong(
            f"{said[:30]!r} is not a state",
            why=f"they are {', '.join(STATES)}",
            next="return one of these words for each step",
        )
    if {said, right} == {"record", "record and save"}:
        return Wrong(
            "a recording step and the one that ends a recording are confused",
            why=place,
            next="the trace is handed over at one step of each cycle: which?",
        )
    start, is_over = case["skip_first"], len(saved) == case["repeat"] and step > saved[-1]
    if step < start or (said != "none" and is_over):
        return Wrong(
            "the profiler is active in steps in which it should be idle",
            why=place,
            next="nothing happens in the first skip_first steps, nor after the last cycle; which step is that?",
        )
    is_later = bool(saved) and step > saved[0]
    if case["stretch"] > 1 and case["wait"] and is_later:
        then = "each cycle waits `stretch` times as long as the one before it; the first waits `wait` steps"
        return Wrong("a later cycle waits too long or not long enough", why=place, next=then)
    if said == "none" and not case["repeat"] and is_later:
        return Wrong("the cycles end although repeat is 0", why=place, next="what does 0 mean?")
    if start and is_later:
        return Wrong(
            "a later cycle is out of step",
            why=place,
            next="skip_first belongs to the first cycle alone; count from there",
        )
    return Wrong("a state is wrong", why=place, next="where in its cycle is this step: waiting, warming up or active?")


def _utilisation_symptom(case: Any, said: Any) -> Wrong:
    added = sum(kernel["end_s"] - kernel["start_s"] for kernel in case["kernels"])
    if close(said, added / case["window_s"]):
        return Wrong(
            "kernels that run at the same time are counted twice",
            why=f"their lengths add up to {seconds(added)}, in a window of {seconds(case['window_s'])}",
            next="the monitor asks whether any kernel runs, not how many",
        )
    return Wrong(
        f"the utilisation is not {said!r}",
        why="it is the share of the window in which at least one kernel runs",
        next="join intervals that overlap, add up, divide by the window",
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
            "a last wave that is not full counts as a full one",
            why="a kernel with more blocks than SMs runs in waves, and the last one has places left",
            next="how many waves are there, and how many places do they have in all?",
        )
    if close(got[1], _sm_share_with_a_wave_more(case)):
        return Wrong(
            "blocks that fill their last wave exactly get an empty wave more",
            why=f"{case['sm_count']} blocks on {case['sm_count']} SMs are one wave, not two",
            next="round the number of waves up; do not round it down and add one",
        )
    if close(got[1] * got[0], want[1]):
        return Wrong(
            "the SMs' share is of the busy time, not of the window",
            why="when no kernel runs, no SM works either",
            next="divide by the window",
        )
    return Wrong(
        "the share of SMs at work is wrong",
        why=f"{got[1]!r} came back; it is SM-seconds at work over SM-seconds in the window",
        next="each kernel: its length, times the average number of SMs that hold one of its blocks",
    )
