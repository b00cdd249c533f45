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
                why = f"pass {number + 1}, drafted {one['drafted']}: {_short(mine)} came back, right is {_short(right)}"
                then = "keep drafted tokens up to the first that is refused, then draw one more"
                raise _named(case, "tokens", _flat(got["tokens"])) or Wrong(
                    "A pass produces different tokens.", why=why, next=then
                )
        for (acceptance, cost, most), mine, right in zip(
            case["draftings"], got["lengths"], want["lengths"], strict=True
        ):
            if mine != right:
                why = f"acceptance {acceptance:g}, cost {cost:g}, at most {most}: {mine:g} came back, best is {right:g}"
                then = "tokens of a pass over its time, (1 + cost · length) large passes, for each length from 0 on"
                raise _named(case, "lengths", got["lengths"]) or Wrong(
                    "Another draft length is best.", why=why, next=then
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
        ("accepts", "min(1, p[token] / q[token])"),
        ("residual", "what p has above q, divided by its sum"),
    ):
        if len(got[name]) != len(want[name]):
            why = f"{len(got[name])} values came back for {len(want[name])} tokens"
            raise Wrong(f"{_PARTS[name]} has another length.", why=why, next="one value for each token")
        bad = [token for token, (a, b) in enumerate(zip(got[name], want[name], strict=True)) if not _near(a, b)]
        if bad:
            mine, right = got[name][bad[0]], want[name][bad[0]]
            why = f"token {bad[0]}: {mine:.6g} came back, and {right:.6g} is right{_comes_out(case, got)}"
            raise _named(case, name, got[name]) or Wrong(f"{_PARTS[name]} is another one.", why=why, next=then)


def _comes_out(case: Any, got: Any) -> str:
    """What the student's two functions give together, where it differs from the large model's distribution."""
    p, q, accepts, residual = case["p"], case["q"], got["accepts"], got["residual"]
    if len(residual) != len(p):
        return ""
    refused = 1 - sum(a * b for a, b in zip(q, accepts, strict=True))
    made = [one * kept + refused * rest for one, kept, rest in zip(q, accepts, residual, strict=True)]
    worst = max(range(len(p)), key=lambda token: abs(made[token] - p[token]))
    return f"; token {worst} then comes with {made[worst]:.3f}, and the large model gives it {p[worst]:.3f}"


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


_PARTS = {"accepts": "The probability of acceptance", "residual": "The residual"}
_SAID: dict[str, Sentence] = {
    "if_likelier": (
        "A token is accepted only where the large model likes it at least as well.",
        "then tokens that it likes a little less never come out",
        "accept it with the probability p / q where p is below q",
    ),
    "the_likeliest": (
        "Only the large model's likeliest token is accepted.",
        "then no other token that was drafted comes out",
        "accept each with its probability min(1, p / q)",
    ),
    "not_capped": ("A probability is above 1.", "p / q is, where p is above q", "min(1, p / q)"),
    "by_the_large": ("The probability of acceptance is p.", "q plays no part in it", "divide p by q, and cap at 1"),
    "the_other_way": ("p and q are exchanged.", "q / p came back", "p is the large model's, q the one that drafted"),
    "not_divided": (
        "The residual does not sum to 1.",
        "it has what p is above q, and is not divided by its sum",
        "divide by the sum",
    ),
    "all_of_p": (
        "The residual is p itself.",
        "then tokens that were drafted often come out too often",
        "only what p has above q is left",
    ),
    "differences": ("The residual contains more than the excess of p over q.", "it counts |p - q|", "max(p - q, 0)"),
    "no_bonus": (
        "The bonus token is missing.",
        "where all drafted tokens are accepted, the large model has one more distribution",
        "draw the last token from large[len(drafted)]",
    ),
    "stops_without_one": (
        "Nothing is drawn after a refused token.",
        "each pass of the large model gives a token",
        "draw one from the residual of that position",
    ),
    "from_all_of_large": (
        "After a refused token, one is drawn from the large model's distribution.",
        "it should come from the residual",
        "residual(large[i], small[i])",
    ),
    "goes_on": (
        "Tokens after a refused one are kept.",
        "they were drafted for another text",
        "stop at the first refused token",
    ),
    "no_cost": (
        "Drafting costs nothing.",
        "all lengths are what tokens a pass alone would give",
        "divide by 1 + cost · length",
    ),
    "one_fewer": (
        "The large model's own token is left out.",
        "a pass over `length` drafted tokens yields at most length + 1 tokens",
        "(1 - acceptance ** (length + 1)) / (1 - acceptance)",
    ),
    "at_least_one": ("A length of 0 is never taken.", "where drafting costs too much, no draft is best", "begin at 0"),
}
