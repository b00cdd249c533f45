"""guards: what torch.compile does at each call of a function: a hit, a recompile, a break, or nothing any more."""

from __future__ import annotations

import copy
from typing import Any

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab08c_compilers.guard_slips import SAID, symptom, why_it_fits, why_none_fits
from edl_labs.exercises.slip_digests import digest

WORDS = ("hit", "recompile", "break", "eager")
# The lines of which functions are made, as the lab's text lists them.
LINES = (
    "y = y.relu()",
    "y = y - y.mean()",
    "y = y - y.mean().item()",
    "y = y * float(y.max())",
    "y = torch.where(y > 0, y, 0)",
    "if y.sum() > 0: y = y + 1",
    "if y.ndim == 2: y = y + 1",
    "y = y * len(x)",
    "print(y)",
)


@exercise("guards")
class Guards(Exercise):
    """What torch.compile does at each call, from guards, one dynamic step, a limit, and lines that break.

    `Cache(lines)` stands for a compiled function of these lines, and `call(args)` gives the decision on a call. The
    evidence is the list of decisions. `slips` of a case are digests of what known slips decide.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        inputs = self.student_inputs(copy.deepcopy(given))
        cache = student.Cache(inputs["lines"])
        return [cache.call(args) for args in inputs["calls"]]

    def student_inputs(self, case: Any) -> Any:
        """The lines, and the arguments of the calls with tensors of the sizes, dtypes and layouts that a case says."""
        calls = [{name: _made(value) for name, value in args.items()} for args in case["calls"]]
        return {"lines": case["lines"], "calls": calls}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        for at, (mine, right) in enumerate(zip(got, want, strict=True)):
            if mine not in WORDS:
                why = f"got {mine[:30]!r} for call {at}"
                then = f"return one of {', '.join(WORDS)}"
                raise Wrong("your code returned something other than one of the four decisions", why=why, next=then)
            if mine != right:
                what, then = symptom(mine, right)
                earlier = ", ".join(want[:at]) or "none"
                why = f"your code returned {mine!r} for call {at}; the decisions before it: {earlier}"
                if right == "hit":
                    why = f"your code returned {mine!r} for call {at}; {why_it_fits(case['calls'], want, at)}"
                elif mine == "hit":
                    why = f"your code returned {mine!r} for call {at}; {why_none_fits(case['calls'], want, at)}"
                elif "break" in (mine, right):
                    why = f"your code returned {mine!r} for call {at}, which runs {_run_by(case, at)}"
                raise Wrong(what, why=why, next=then)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The slip that gives every decision of all cases."""
        if [list(one) for one in got] == [list(one) for one in want]:
            return None
        mine = [digest(one) for one in got]
        for name, (what, then) in SAID.items():
            if all(case["slips"].get(name) == one for case, one in zip(cases, mine, strict=True)):
                return Wrong(
                    what,
                    why="a program with only this mistake makes the same decisions as yours in all cases",
                    next=then,
                )
        return None

    def format_case(self, case: Any) -> str:
        """The lines, and the arguments of each call."""
        lines = [
            f"  if {one['only_if']}: {one['code']}" if one["only_if"] else f"  {one['code']}" for one in case["lines"]
        ]
        told = [_told(args) for args in case["calls"]]
        same = {name: text for name, text in told[0].items() if all(one[name] == text for one in told)}
        always = [f"in all calls: {', '.join(same.values())}"] if same else []
        calls = [
            f"  call {at}: {', '.join(text for name, text in one.items() if name not in same) or 'nothing else'}"
            for at, one in enumerate(told)
        ]
        return "\n".join(["lines:", *lines, *always, *calls])


def _run_by(case: Any, at: int) -> str:
    """The lines that a call runs."""
    args = case["calls"][at]
    lines = [one["code"] for one in case["lines"] if not one["only_if"] or args[one["only_if"]]]
    return ", ".join(f"`{one}`" for one in lines) or "none of the lines"


def _made(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    import torch

    sizes, dtype = value["sizes"], getattr(torch, value["dtype"])
    if value["layout"] == "contiguous":
        return torch.ones(sizes, dtype=dtype)
    return torch.ones(sizes[::-1], dtype=dtype).t()


def _told(args: Any) -> dict[str, str]:
    """Each argument as text, by name."""
    x = args["x"]
    layout = "" if x["layout"] == "contiguous" else f" {x['layout']}"
    rest = {name: f"{name}={value}" for name, value in args.items() if name != "x"}
    return {"x": f"x {x['dtype']}{x['sizes']}{layout}", **rest}
