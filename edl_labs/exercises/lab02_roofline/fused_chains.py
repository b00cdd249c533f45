"""fused_or_not: what a chain of operations moves, as kernels of its own and as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
        which = same.index(False)
        raise _intensity_mistake(case, ("unfused", "fused")[which], got[which], want[which])

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What each chain moved by one count that all cases fit: one case may fit several."""
        answers = [_apart(answer)[0] for answer in got]
        rows = list(zip(cases, answers, want, strict=True))
        is_common = any(_apart(answer)[1] or _common_mistake(*row) for answer, row in zip(got, rows, strict=True))
        if is_common or all(close(answer[0], right[1]) and close(answer[1], right[0]) for _, answer, right in rows):
            return None
        for which, (counts, why) in enumerate(((_UNFUSED, _APART), (_FUSED, _ONE_KERNEL))):
            if all(close(answer[which], right[which], rtol=1e-6) for _, answer, right in rows):
                continue
            for moves, what, then in counts:
                if all(close(_moved(case, answer[which]), float(moves(case)), rtol=1e-6) for case, answer, _ in rows):
                    return Wrong(what, why=why, next=then)
        return None

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
            why = f"your {which} count leaves out {names}, which your code has removed from the dict by then"
            then = "look up sizes without removing them, or work on a copy: dict(size_bytes)"
            return Wrong("your code removes sizes from `size_bytes`, and misses them later", why=why, next=then)
    return None


def _common_mistake(case: Any, got: Any, want: Any) -> Wrong | None:
    """What can be said of either of the two intensities."""
    for which, value, right in zip(("unfused", "fused"), got, want, strict=True):
        if close(value * right, 1.0, rtol=1e-6) and not close(right, 1.0):
            then = "return an intensity, in FLOP/B"
            return Wrong("your answer is in bytes per FLOP", why=f"your {which} answer is {say(value)}", next=then)
    chain, size = case["chain"], case["size_bytes"]
    last = chain[-1]["flop"] / sum(step["flop"] for step in chain)
    for which, value, right in zip(("unfused", "fused"), got, want, strict=True):
        if last != 1 and close(value, right * last, rtol=1e-6):
            why, then = f"each of the {len(chain)} steps has operations", "add up all FLOPs of the chain"
            return Wrong(
                f"in the {which} case, your code counts only the operations of the last step", why=why, next=then
            )
    each = [s["flop"] / sum(size[n] for n in {*s["reads"], s["writes"]}) for s in chain]
    if not close(got[0], want[0], rtol=1e-6) and close(got[0], sum(each) / len(each), rtol=1e-6):
        why = "in your average, a short step weighs as much as a long one"
        return Wrong(
            "your code averages the intensities of the steps",
            why=why,
            next="add up the FLOPs, and add up the bytes; then divide",
        )
    return None


def _moved(case: Any, got: float) -> float:
    flop = sum(step["flop"] for step in case["chain"])
    return flop / got if got else 0.0


def _bytes_of(case: Any, *names: Iterable[str]) -> int:
    """The bytes of all tensors named, each as often as it is named."""
    return sum(case["size_bytes"][name] for some in names for name in some)


def _reads(case: Any) -> list[str]:
    """What the steps read, each tensor once a step."""
    return [name for step in case["chain"] for name in set(step["reads"])]


def _made(case: Any) -> list[str]:
    return [step["writes"] for step in case["chain"]]


def _outside(case: Any) -> set[str]:
    return {*_reads(case)} - {*_made(case)}


_Count = tuple[Callable[[Any], int], str, str]  # the bytes that move by it, what is wrong, what to do
_APART = "in the unfused case, each step is a separate kernel; this mistake gives exactly your intensities"
_UNFUSED: tuple[_Count, ...] = (
    (
        lambda case: _bytes_of(case, {*_reads(case), *_made(case)}),
        "in the unfused case, your code counts every tensor once",
        "count a result when one kernel writes it, and again when another kernel reads it",
    ),
    (
        lambda case: _bytes_of(case, _reads(case)),
        "in the unfused case, your code writes nothing",
        "where does a kernel leave its result?",
    ),
    (
        lambda case: _bytes_of(case, (name for step in case["chain"] for name in step["reads"]), _made(case)),
        "in your unfused count, a kernel reads the same tensor twice",
        "count one read, even if a kernel needs the tensor twice",
    ),
    (
        lambda case: _bytes_of(case, _reads(case), case["keep"]),
        "in the unfused case, your code writes only the results in `keep`",
        "count the write of every result, even if it is not in `keep`: the next kernel reads it from memory",
    ),
    (
        lambda case: _bytes_of(case, {*_reads(case)}, _made(case)),
        "in the unfused case, your code counts one read of a tensor that two kernels read",
        "count everything that each kernel reads from memory",
    ),
    (
        lambda case: _bytes_of(
            case, _outside(case), (name for name in _reads(case) if name in _made(case)), _made(case)
        ),
        "in the unfused case, your code counts one read of an input that two kernels read",
        "count everything that each kernel reads from memory",
    ),
    (
        lambda case: _bytes_of(case, _outside(case), case["keep"]),
        "in the unfused case, your code counts the chain as one kernel",
        "what do the kernels in the middle read, and where do they leave their results?",
    ),
)
_ONE_KERNEL = "in the fused case, one kernel does the whole chain; this mistake gives exactly your intensities"
_FUSED: tuple[_Count, ...] = (
    (
        lambda case: _bytes_of(case, _outside(case), _made(case)),
        "in the fused case, your code writes all results to memory",
        "count a write only for the tensors in `keep`: nothing else is needed afterwards",
    ),
    (
        lambda case: _bytes_of(case, {*_reads(case)}, case["keep"]),
        "in the fused case, your code reads the results of earlier steps from memory",
        "leave out what the same kernel has computed: it is still in registers",
    ),
    (
        lambda case: _bytes_of(case, _outside(case), case["keep"], {*_reads(case)} & {*case["keep"]}),
        "in the fused case, your code counts a read of a result that is in `keep`",
        "count only its write: the fused kernel still has it in registers",
    ),
    (
        lambda case: _bytes_of(case, _outside(case), case["keep"], _made(case)[-1:]),
        "in the fused case, your code writes the last result twice",
        "count that write once: `keep` contains the tensor already",
    ),
    (
        lambda case: _bytes_of(case, _outside(case), _made(case)[-1:]),
        "in the fused case, your code does not write a result that is in `keep`",
        "count the write of each tensor in `keep`: it must be in memory at the end",
    ),
    (
        lambda case: _bytes_of(case, _outside(case)),
        "in the fused case, your code writes nothing",
        "what must be in memory at the end?",
    ),
    (
        lambda case: _bytes_of(case, case["keep"]),
        "in the fused case, your code reads nothing",
        "what does the chain need from outside?",
    ),
    (
        lambda case: _bytes_of(case, (name for name in _reads(case) if name not in _made(case)), case["keep"]),
        "in the fused case, your code reads an input again for every step that uses it",
        "count one read: there is only one kernel",
    ),
    (
        lambda case: _bytes_of(case, set(case["chain"][0]["reads"]), set(case["keep"])),
        "in the fused case, your code counts only what the first step reads: it leaves out the inputs of later steps",
        "which steps need something from outside the chain?",
    ),
    (
        lambda case: _bytes_of(case, _reads(case), _made(case)),
        "in the fused case, your code counts as if the kernels were separate",
        "which tensors does a single kernel still have in registers?",
    ),
)


def _intensity_mistake(case: Any, which: str, got: float, want: float) -> Wrong:
    need(got, f"the {which} intensity")
    moved = f"{_moved(case, want):.0f} bytes are moved, and {_moved(case, got):.0f} would give your answer"
    return Wrong(
        f"the {which} intensity is wrong",
        why=f"expected {want:.7g} FLOP/B, got {got:.7g}: {moved}",
        next="list what each kernel reads and writes; divide all FLOPs of the chain by all bytes that are moved",
    )
