"""What `new` writes for an exercise: a plain function, a program on a VirtualGPU or a cluster, or a question in prose.

`@name@`, `@class@` and words such as `@v@` are filled in; no solution is here as it is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from edl_labs.course.lab import cluster_kind
from edl_labs.errors import UsageError


@dataclass(frozen=True)
class ExerciseKind:
    """Templates of one kind: cells, the table of lab.toml, wrong answers, and the exercise's class with its imports."""

    cells: str
    toml: str
    wrong: dict[str, str] = field(default_factory=dict)
    module: str = ""
    imports: tuple[str, ...] = ()


_FUNCTION_CELLS = '''\

# %% [markdown]
# ## @heading@
#
# One run in a hundred meets a busy machine. **Predict:** what does one run that is ten times slower do to the mean of
# five? And to their median?
#
# Write `@name@(durations_s)`, for a list of durations:
# the one in the middle when they are put in order, and the mean of the middle two when their number is even.


# %% solve="@name@"
def @name@(durations_s):
    """The median of a list of durations, in seconds."""
    ### BEGIN SOLUTION
    @v@ = sorted(durations_s)
    @v@_half = len(@v@) // 2
    return (@v@[@v@_half] + @v@[-@v@_half - 1]) / 2
    ### END SOLUTION


# %% check="@name@"
check("@name@")
'''
_FUNCTION_TOML = """\

[[exercise]]
name = "@name@"
points = 1
hints = [
  "Which of the durations would you believe if one of them was disturbed?",
  "Put them in order first. An even number of them has two in the middle.",
]
library = { "statistics.median" = "a new exercise begins as a median; once yours asks for more, remove this line" }
"""
_FUNCTION_WRONG = {
    "mean": """\
# exercise: @name@
# told: one slow run moved the result


def @name@(durations_s):
    return sum(durations_s) / len(durations_s)
""",
    "not_in_order": """\
# exercise: @name@
# told: the durations were not put in order


def @name@(durations_s):
    @v@_half = len(durations_s) // 2
    return (durations_s[@v@_half] + durations_s[-@v@_half - 1]) / 2
""",
}
_FUNCTION_MODULE = '''\


@exercise("@name@")
class @class@:
    """The median of durations, one of which is an outlier."""

    def cases(self, rng: Any) -> Any:
        """Lists of 3 to 8 durations in seconds, in no order, one of them ten times too long."""
        drawn = [sorted(rng.uniform(1e-3, 2e-3, size).tolist()) for size in (3, 4, 5, 6, 7, 8)]
        return [[10 * ordered[-1], *ordered[1:-1][::-1], ordered[0]] for ordered in drawn] + [
            [*ordered[2:], 10 * ordered[0], ordered[1]] for ordered in drawn
        ]

    def probe(self, student: Any, case: Any) -> Any:
        """What the student's function returns."""
        return student.@name@(case)

    def compare(self, case: Any, got: Any, want: Any) -> None:
        """Full marks for the median; a mean and a middle of unsorted durations are told apart."""
        if close(got, want):
            return
        half = len(case) // 2
        if close(got, sum(case) / len(case)):
            raise Wrong(
                "one slow run moved the result",
                why="it is the mean, to which every duration contributes",
                next='which value stays where it is? hint("@name@")',
            )
        if close(got, (case[half] + case[-half - 1]) / 2):
            raise Wrong(
                "the durations were not put in order",
                why="it is the middle of the list as it was given",
                next='hint("@name@")',
            )
        raise Wrong(
            "the result is not the median",
            why="another value came back",
            next='hint("@name@")',
        )
'''
_GPU_CELLS = '''\

# %% [markdown]
# ## @heading@
#
# A GPU works through a queue; the host only fills it. **Predict:** how much longer does a step of forty kernels of
# 10 µs take when the host waits for each of them?
#
# Write `@name@(gpu, count, *, kernel)`: run `kernel(gpu)`, which launches one kernel, `count` times on the VirtualGPU
# `gpu`, and come back when all of it is done. Nobody needs a result in between.


# %% solve="@name@"
def @name@(gpu, count, *, kernel):
    """Run `kernel(gpu)` `count` times; all of it is done on return."""
    ### BEGIN SOLUTION
    @w@ = gpu.current_@w@()
    for step in range(count):
        kernel(gpu)
    @w@.synchronize()
    ### END SOLUTION


# %% check="@name@"
check("@name@")
'''
_GPU_TOML = """\

[[exercise]]
name = "@name@"
points = 1
hints = [
  "When does the host have to know that a kernel is done?",
  "Fill the queue first. One wait at the end covers everything before it in its stream.",
]
"""
_GPU_WRONG = {
    "waits_each_time": """\
# exercise: @name@
# told: the host waits where nobody needs a result


def @name@(gpu, count, *, kernel):
    for step in range(count):
        kernel(gpu)
        gpu.synchronize()
""",
    "comes_back_early": """\
# exercise: @name@
# told: it came back before the work was done


def @name@(gpu, count, *, kernel):
    for step in range(count):
        kernel(gpu)
""",
}
_GPU_MODULE = '''\


@exercise("@name@")
class @class@:
    """Kernels in a queue: all of them, one wait, no idle device. The evidence is the program that was issued."""

    form: ClassVar[Any] = {"program": ""}

    def cases(self, rng: Any) -> Any:
        """Machines, numbers of kernels and their duration in seconds."""
        chips = ("A100", "H100", "H200")
        return [
            {"chip": chips[i % 3], "count": int(rng.integers(20, 60)), "kernel_s": float(rng.uniform(1e-5, 3e-5))}
            for i in range(4)
        ]

    def probe(self, student: Any, case: Any) -> Any:
        """The program that the student's function issues, its end marked by a reading of the clock."""
        gpu = VirtualGPU(self.machine(case))

        def kernel(gpu: VirtualGPU) -> None:
            gpu.launch("work", duration_s=case["kernel_s"])

        student.@name@(gpu, case["count"], kernel=kernel)
        gpu.now_s()
        return {"program": written(gpu.program)}

    def public(self, case: Any, want: Any) -> Any:
        """The time of the reference, which a golden may hold; its program would be the answer."""
        return {"makespan_s": replayed(want["program"], self.machine(case)).makespan_s}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        """What was launched, whether it was done, and how long it took, all from a replay of the program."""
        run = replayed(got["program"], self.machine(case))
        launches = [entry for entry in run.program if entry["op"] == "launch"]
        wrong = [entry for entry in launches if entry.get("duration_s") != case["kernel_s"]]
        if len(launches) != case["count"] or wrong:
            raise Wrong(
                "the kernel did not run as often as asked",
                why=f"{len(launches) - len(wrong)} launches of it, {len(wrong)} of others, not {case['count']} of it",
                next='hint("@name@")',
            )
        if not run.readings[-1].drained:
            raise Wrong(
                "it came back before the work was done",
                why="the device still had kernels to run when the function returned",
                next="wait once, at the end",
            )
        best_s = want.get("makespan_s") or replayed(want["program"], self.machine(case)).makespan_s
        if run.makespan_s > 1.02 * best_s:
            raise Wrong(
                "the host waits where nobody needs a result",
                why=f"it takes {run.makespan_s / best_s:.2f} times as long as it has to",
                next='hint("@name@")',
            )

    @staticmethod
    def machine(case: Any) -> VirtualMachine:
        """The machine of a case, its context already made."""
        return VirtualMachine.of(case["chip"]).warm()
'''
_EXPLAIN_CELLS = """\

# %% [markdown] explain="@name@"
# ## @heading@
#
# **Explain.** In three to five sentences: your question here. Say what you predicted, what you measured, and what made
# the difference.
"""
_EXPLAIN_TOML = '''\

[[exercise]]
name = "@name@"
kind = "explain"
points = 2
hints = [
  "What would you have to change to make the effect go away?",
  "Name the one cause that explains both numbers, and what speaks against the next best one.",
]
rubric = [
  "1 point: @name@: names the cause of the difference.",
  "1 point: @name@: says what was measured to tell it from another cause.",
]
model_answer = """
@name@: replace this by an answer that you would give full marks.
"""
'''
KINDS = {
    "function": ExerciseKind(
        _FUNCTION_CELLS,
        _FUNCTION_TOML,
        _FUNCTION_WRONG,
        _FUNCTION_MODULE,
        ("from typing import Any", "from edl_labs.checks import Wrong, close, exercise"),
    ),
    "gpu": ExerciseKind(
        _GPU_CELLS,
        _GPU_TOML,
        _GPU_WRONG,
        _GPU_MODULE,
        (
            "from typing import Any, ClassVar",
            "from edl_labs.checks import Wrong, exercise",
            "from edl_labs.exercises.recorded_programs import replayed, written",
            "from edl_labs.virtual import VirtualGPU, VirtualMachine",
        ),
    ),
    "cluster": ExerciseKind(
        cluster_kind.CELLS, cluster_kind.TOML, cluster_kind.WRONG, cluster_kind.MODULE, cluster_kind.IMPORTS
    ),
    "explain": ExerciseKind(_EXPLAIN_CELLS, _EXPLAIN_TOML),
}


def kind_called(name: str) -> ExerciseKind:
    """The templates of a kind; UsageError, with those there are, for any other."""
    if name not in KINDS:
        why = f"there are {', '.join(KINDS)}"
        raise UsageError(f"there is no kind {name!r}", why=why, next="--kind function")
    return KINDS[name]
