"""fused_or_not: what a chain of operations moves, as kernels of its own and as one."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.checks.evidence_form import answer_text
from edl_labs.errors import Wrong
from edl_labs.exercises.lab02_roofline.answer_forms import need, say, two_numbers


@exercise("fused_or_not")
class FusedOrNot(Exercise):
    """Arithmetic intensity of a chain of operations, as kernels of their own and as one.

    `student.intensities(chain, size_bytes=, keep=)` gives `(unfused, fused)` FLOP per byte.
    """

    answers = ("answer",)

    skip_type_check = True  # `two_numbers` names what is asked for

    def probe(self, student: Any, given: Any) -> Any:
        chain = [{**step, "reads": list(step["reads"])} for step in given["chain"]]
        size = dict(given["size_bytes"])
        answer = student.intensities(chain, size_bytes=size, keep=list(given["keep"]))
        left = {name: _number(size.get(name)) for name in given["size_bytes"]}
        return answer if left == given["size_bytes"] else {"answer": answer, "left": left}

    def format_answer(self, case: Any, got: Any) -> str:
        """The two intensities; what became of the sizes is said where it matters."""
        return answer_text(_apart(got)[0])

    def compare(self, case: Any, got: Any, want: Any) -> None:
        got, left = _apart(got)
        two_numbers(got, "unfused, fused")
        same = [close(value, right, rtol=1e-6) for value, right in zip(got, want, strict=True)]
        if all(same):
            return
        if close(got[0], want[1]) and close(got[1], want[0]):
            raise Wrong("the two answers are swapped", why="unfused comes first", next="return unfused, fused")
        common = (_sizes_changed(case, got, want, left) if left else None) or _common_mistake(case, got, want)
        if common is not None:
            raise common
        raise _unfused_mistake(case, got[0]) if not same[0] else _fused_mistake(case, got[1])

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The fused chain reads what its first step needs, and nothing later: one case may fit other mistakes too."""
        got = [_apart(answer)[0] for answer in got]
        if not all(close(answer[0], right[0]) for answer, right in zip(got, want, strict=True)):
            return None
        for case, answer in zip(cases, got, strict=True):
            names = (*set(case["chain"][0]["reads"]), *set(case["keep"]))
            if not close(_moved(case, answer[1]), float(sum(case["size_bytes"][name] for name in names))):
                return None
        return Wrong(
            "fused, the inputs of later steps were left out",
            why="only what the first step reads was counted",
            next="which steps need something from outside the chain?",
        )

    def format_case(self, case: Any) -> str:
        steps = [f"  {s['op']}: {', '.join(s['reads'])} -> {s['writes']}  ({s['flop']} FLOP)" for s in case["chain"]]
        sizes = ", ".join(f"{name} {nbytes}" for name, nbytes in case["size_bytes"].items())
        return "\n".join([*steps, f"bytes: {sizes}", f"keep: {', '.join(case['keep'])}"])


def _number(value: Any) -> Any:
    """A size as it was found; 0 where there is none any more."""
    return value if type(value) in (int, float) else 0


def _apart(got: Any) -> tuple[Any, dict[str, Any]]:
    """The answer, and the sizes that size_bytes had afterwards where the code has changed them."""
    if isinstance(got, dict) and got.keys() == {"answer", "left"}:
        return got["answer"], got["left"]
    return got, {}


def _sizes_changed(case: Any, got: Any, want: Any, left: dict[str, Any]) -> Wrong | None:
    """An answer that differs from the right one by what the code itself took out of size_bytes."""
    gone = {name: nbytes - left[name] for name, nbytes in case["size_bytes"].items()}
    steps = [name for step in case["chain"] for name in set(step["reads"])]
    results = [step["writes"] for step in case["chain"]]
    ends = ({*steps} - {*results}) | {*case["keep"]}
    missed = {"unfused": (steps, [*steps, *results]), "fused": (ends,)}
    for which, value, right in zip(missed, got, want, strict=True):
        less = [sum(gone[name] for name in names) for names in missed[which]]
        if any(n and close(_moved(case, value), _moved(case, right) - n) for n in less):
            names = ", ".join(name for name, nbytes in gone.items() if nbytes)
            why = f"the {which} chain is counted without {names}, which your code has taken out of the dict by then"
            then = "look sizes up without taking them out, or count on a copy: dict(size_bytes)"
            return Wrong("size_bytes was used up: what is counted later misses sizes", why=why, next=then)
    return None


def _common_mistake(case: Any, got: Any, want: Any) -> Wrong | None:
    """What can be said of either of the two intensities."""
    for which, value, right in zip(("unfused", "fused"), got, want, strict=True):
        if close(value * right, 1.0, rtol=1e-6) and not close(right, 1.0):
            then = "an intensity has the unit FLOP/B"
            return Wrong("that is bytes per FLOP", why=f"{which}, {say(value)} came back", next=then)
    chain, size = case["chain"], case["size_bytes"]
    last = chain[-1]["flop"] / sum(step["flop"] for step in chain)
    for which, value, right in zip(("unfused", "fused"), got, want, strict=True):
        if last != 1 and close(value, right * last, rtol=1e-6):
            why, then = f"the operations of all {len(chain)} steps are done", "all FLOPs of the chain"
            return Wrong(f"{which}, the last step's operations alone were counted", why=why, next=then)
    each = [s["flop"] / sum(size[n] for n in {*s["reads"], s["writes"]}) for s in chain]
    if not close(got[0], want[0], rtol=1e-6) and close(got[0], sum(each) / len(each), rtol=1e-6):
        why = "a short step would weigh as much as a long one"
        return Wrong(
            "the steps' intensities were averaged", why=why, next="first add the FLOPs, and the bytes; then divide"
        )
    return None


def _moved(case: Any, got: float) -> float:
    flop = sum(step["flop"] for step in case["chain"])
    return flop / got if got else 0.0


def _unfused_mistake(case: Any, got: float) -> Wrong:
    need(got, "the unfused intensity")
    size, chain, moved = case["size_bytes"], case["chain"], _moved(case, got)
    names = {name for step in chain for name in (*step["reads"], step["writes"])}
    known = [
        (sum(size[n] for n in names), "unfused, every tensor was counted once", "a kernel reads what another wrote"),
        (
            sum(size[n] for s in chain for n in set(s["reads"])),
            "unfused, nothing was written",
            "where does a kernel leave its result?",
        ),
        (
            sum(size[n] for s in chain for n in (*s["reads"], s["writes"])),
            "a kernel read one tensor twice",
            "a kernel that needs a number twice reads it once",
        ),
    ]
    for nbytes, what, then in known:
        if close(moved, float(nbytes), rtol=1e-6):
            return Wrong(what, why="unfused, each step is a kernel of its own", next=then)
    return _intensity_mistake("unfused", got)


def _fused_mistake(case: Any, got: float) -> Wrong:
    need(got, "the fused intensity")
    size, chain, keep, moved = case["size_bytes"], case["chain"], set(case["keep"]), _moved(case, got)
    made = {step["writes"] for step in chain}
    outside = {name for step in chain for name in step["reads"]} - made
    into = sum(size[name] for name in outside)
    last = chain[-1]["writes"]
    kept = sum(size[name] for name in keep)
    known = [
        (into + sum(size[n] for n in made), "fused, an intermediate went through memory", "who needs it afterwards?"),
        (into + size[last], "a result that is kept was not written", "keep names what must be in memory at the end"),
        (into, "fused, nothing was written", "what must be in memory at the end?"),
        (into + 2 * kept - size[last], "a kept result was read back", "the fused kernel still has it in registers"),
        (
            sum(size[n] for s in chain for n in set(s["reads"]) - made) + kept,
            "an input was read for every step that uses it",
            "one kernel, one read",
        ),
    ]
    for nbytes, what, then in known:
        if close(moved, float(nbytes), rtol=1e-6):
            return Wrong(what, why="fused, there is one kernel for the whole chain", next=then)
    return _intensity_mistake("fused", got)


def _intensity_mistake(which: str, got: float) -> Wrong:
    return Wrong(
        f"the {which} intensity is wrong",
        why=f"{say(got)} FLOP/B came back",
        next="all FLOPs of the chain, over all bytes that move",
    )
