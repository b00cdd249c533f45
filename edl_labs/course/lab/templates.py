"""The texts that `new` writes. `@name@` and `@v@` are filled in, so that no line of a solution is in this file."""

from __future__ import annotations

import re

TITLE = """\
# %% [markdown]
# # @title@
#
# After this lab you can
#
# * say what one slow run does to a mean, and what it does to a median.
#
# **About @minutes@ minutes.** Cell 1 is for the title, the outcomes and the minutes; replace this text by your own.

# %% setup
try:
    from edl_labs import Progress, check, hint  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("edl_labs is not installed in this kernel; labs/README.md says how") from error

# %% parameters
repeats = 5
"""

EXERCISE = '''\

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

TOML = """\
title = "@title@"
minutes = @minutes@
device = "any"

[parameters.smoke]
repeats = 3

[parameters.full]
repeats = 5
"""

TOML_EXERCISE = """\

[[exercise]]
name = "@name@"
points = 1
hints = [
  "Which of the durations would you believe if one of them was disturbed?",
  "Put them in order first. An even number of them has two in the middle.",
]
"""

WRONG = {
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

MODULE = '''\
"""The exercises of @lab@."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Wrong, close, exercise
'''

MODULE_EXERCISE = '''\


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
        if close(got, want, rtol=1e-9):
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


def filled(template: str, **values: str) -> str:
    """`template` with each `@key@` replaced; KeyError when one has no value."""
    for key, value in {"v": "in_order", **values}.items():
        template = template.replace(f"@{key}@", value)
    left = re.search(r"@([a-z]+)@", template)
    if left:
        raise KeyError(left[1])
    return template
