"""speculate: tokens that a small model drafts and a large one accepts, so that its own distribution comes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.slip_digests import Sentence, digest


@exercise("speculate")
class Speculate(Exercise):
    """`accept_probability`, `residual`, `next_tokens` and `best_length`, each asked alone."""

    answers = "all"

    returns: ClassVar[Mapping[str, Any]] = {"accept_probability": float, "best_length": int}

    def probe(self, student: Any, given: Any) -> Any:
        import numpy as np

        def arrays() -> tuple[Any, Any]:
            return np.array(given["p"]), np.array(given["q"])

        return {
            "accepts": [float(student.accept_probability(*arrays(), token)) for token in range(len(given["p"]))],
            "residual": [float(one) for one in student.residual(*arrays())],
            "tokens": [
                [
                    float(token)
                    for token in student.next_tokens(
                        [*one["drafted"]], np.array(one["large"]), np.array(one["small"]), [*one["uniforms"]]
                    )
                ]
                for one in given["passes"]
            ],
            "lengths": [float(student.best_length(*one)) for one in given["draftings"]],
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        _judge_distribution(case, got, want)
        for number, (one, mine, right) in enumerate(zip(case["passes"], got["tokens"], want["tokens"], strict=True)):
            if mine != right:
                place = f"in pass {number + 1} with the drafted tokens {one['drafted']}"
                why = f"{place}, got {_short(mine)}, expected {_short(right)}"
                then = "keep the drafted tokens before the first refused one, then draw one more"
                raise _named(case, "tokens", _flat(got["tokens"])) or Wrong(
                    "`next_tokens` returns wrong tokens.", why=why, next=then
                )
        for (acceptance, cost, most), mine, right in zip(
            case["draftings"], got["lengths"], want["lengths"], strict=True
        ):
            if mine != right:
                why = f"for acceptance {acceptance:g}, cost {cost:g} and most {most}, got {mine:g}, expected {right:g}"
                then = "for each length from 0 to `most`, divide the tokens of a pass by its time, 1 + cost · length"
                raise _named(case, "lengths", got["lengths"]) or Wrong(
                    "`best_length` does not return the fastest length.", why=why, next=then
                )

    def student_inputs(self, case: Any) -> Any:
        """Arrays, passes and draftings, by name."""
        import numpy as np

        return {**case.given, "p": np.array(case["p"]), "q": np.array(case["q"])}

    def format_case(self, case: Any) -> str:
        """The distributions, and the first pass."""
        p, q = (", ".join(f"{one:.3g}" for one in case[name]) for name in ("p", "q"))
        return f"p = [{p}], q = [{q}]; first pass: drafted {case['passes'][0]['drafted']}"

    def format_answer(self, case: Any, got: Any) -> str:
        """All four parts."""
        accepts, residual = (", ".join(f"{one:.3g}" for one in got[name]) for name in ("accepts", "residual"))
        return f"accepts [{accepts}], residual [{residual}], tokens {got['tokens']}, lengths {got['lengths']}"


def _judge_distribution(case: Any, got: Any, want: Any) -> None:
    """The probabilities of acceptance, and the distribution that they give together with the residual."""
    for name, then in (
        ("accepts", "compute min(1, p[token] / q[token])"),
        ("residual", "divide the excess of p over q by its sum"),
    ):
        if len(got[name]) != len(want[name]):
            why = f"got {len(got[name])} values for {len(want[name])} tokens"
            raise Wrong(f"{_PARTS[name]} has the wrong length.", why=why, next="return one value for each token")
        bad = [token for token, (a, b) in enumerate(zip(got[name], want[name], strict=True)) if not _near(a, b)]
        if bad:
            mine, right = got[name][bad[0]], want[name][bad[0]]
            why = f"for token {bad[0]}, got {mine:.6g}, expected {right:.6g}{_comes_out(case, got)}"
            raise _named(case, name, got[name]) or Wrong(f"{_PARTS[name]} is wrong.", why=why, next=then)


def _comes_out(case: Any, got: Any) -> str:
    """What the student's two functions give together, where it differs from the large model's distribution."""
    p, q, accepts, residual = case["p"], case["q"], got["accepts"], got["residual"]
    if len(residual) != len(p):
        return ""
    refused = 1 - sum(a * b for a, b in zip(q, accepts, strict=True))
    made = [one * kept + refused * rest for one, kept, rest in zip(q, accepts, residual, strict=True)]
    worst = max(range(len(p)), key=lambda token: abs(made[token] - p[token]))
    return f"; token {worst} then has the probability {made[worst]:.3f}, but the large model gives it {p[worst]:.3f}"


def _near(a: float, b: float) -> bool:
    return close(a, b, atol=1e-9)


def _short(tokens: list[float]) -> str:
    return f"[{', '.join(f'{one:g}' for one in tokens[:20])}]"


def _flat(tokens: list[list[float]]) -> list[Any]:
    return [one for row in tokens for one in (*row, "end")]


def _named(case: Any, part: str, answers: Any) -> Wrong | None:
    mine = digest(answers)
    for slip, (what, why, then) in _SAID.items():
        if case["slips"].get(part, {}).get(slip) == mine:
            return Wrong(what, why=why, next=then)
    return None


_PARTS = {"accepts": "Your probability of acceptance", "residual": "Your residual"}
_SAID: dict[str, Sentence] = {
    "if_likelier": (
        "Your function accepts a token only if p is at least q.",
        "a drafted token with p a little below q is then never kept",
        "where p is below q, accept the token with the probability p / q",
    ),
    "the_likeliest": (
        "Your function accepts only the large model's most likely token.",
        "any other drafted token is then always refused",
        "accept each token with its probability min(1, p / q)",
    ),
    "not_capped": (
        "Your function returns a probability above 1.",
        "p / q is above 1 where p is above q",
        "limit the result: min(1, p / q)",
    ),
    "by_the_large": (
        "Your function returns p as the probability of acceptance.",
        "the result does not depend on q",
        "divide p by q, and limit the result to 1",
    ),
    "the_other_way": (
        "Your function exchanges p and q.",
        "your function uses q / p instead of p / q",
        "divide p, the large model's probability, by q, that of the small model",
    ),
    "not_divided": (
        "Your residual does not sum to 1.",
        "your residual is the excess of p over q, but it is not divided by its sum",
        "divide the excess by its sum",
    ),
    "all_of_p": (
        "Your residual is p itself.",
        "tokens that are often drafted then appear too often",
        "keep only the excess of p over q",
    ),
    "differences": (
        "Your residual contains more than the excess of p over q.",
        "your residual uses |p - q|",
        "use max(p - q, 0)",
    ),
    "no_bonus": (
        "Your function leaves out the additional token.",
        "if all drafted tokens are accepted, the large model has one more distribution",
        "draw the last token from large[len(drafted)]",
    ),
    "stops_without_one": (
        "Your function draws no token after a refused one.",
        "each pass of the large model adds one token of its own",
        "draw a token from the residual at that position",
    ),
    "from_all_of_large": (
        "After a refused token, your function draws from the large model's distribution.",
        "the token should come from the residual",
        "draw from residual(large[i], small[i])",
    ),
    "goes_on": (
        "Your function keeps tokens after a refused one.",
        "the later tokens were drafted to follow the refused token",
        "stop at the first refused token",
    ),
    "no_cost": (
        "`best_length` leaves out the cost of drafting.",
        "each of your lengths is the one with the most tokens per pass",
        "divide the tokens of a pass by 1 + cost · length",
    ),
    "one_fewer": (
        "`best_length` leaves out the large model's own token.",
        "a pass over `length` drafted tokens yields up to length + 1 tokens",
        "use (1 - acceptance ** (length + 1)) / (1 - acceptance)",
    ),
    "at_least_one": (
        "`best_length` never returns 0.",
        "if drafting costs too much, it is best not to draft at all",
        "include the length 0",
    ),
}
