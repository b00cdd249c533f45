"""network_roofline: data parallelism on a ring, whose gradients are sent in buckets."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab02_roofline.answer_forms import say
from edl_labs.units import counted

HIDERS = ("weight gradient", "backward")


@exercise("network_roofline")
class NetworkRoofline(Exercise):
    """Intensity against the network, and the time of a data-parallel step whose gradients are sent in buckets.

    `student.network_intensity(batch, nodes=, ...)` and `student.step_s(batch, nodes=, ..., buckets=)`.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        shared = {"nodes": given["nodes"], "itemsize": given["itemsize"]}
        job = {name: given[name] for name in ("weights", "node_flop_per_s", "link_byte_per_s")}
        answer = {
            name: student.step_s(given["batch"], **shared, **job, buckets=buckets)
            for name, buckets in (("step_s", given["buckets"]), ("added_s", 1))
        }
        if given["nodes"] > 1:
            answer["intensity"] = student.network_intensity(given["batch"], **shared, behind=given["behind"])
        return answer

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if "intensity" in want and not close(got["intensity"], want["intensity"]):
            raise _intensity_mistake(case, got["intensity"], want["intensity"])
        for name in ("added_s", "step_s"):
            if not close(got[name], want[name]):
                raise _step_mistake(case, name, got[name], want)

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The FLOPs of the whole backward pass, whatever `behind` says."""
        asked = [(c["behind"], g["intensity"], w) for c, g, w in zip(cases, got, want, strict=True) if "intensity" in w]
        if {behind for behind, *_ in asked} != set(HIDERS):
            return None
        if not all(close(value, w["intensity"] * (1 if b == "backward" else 2)) for b, value, w in asked):
            return None
        return Wrong(
            "`behind` was not read",
            why="the FLOPs of the whole backward pass came back for the weight gradient too",
            next="which of the two products of each weight can hide the sending?",
        )

    def format_case(self, case: Any) -> str:
        rows = [
            f"{name} = {value:g}" if type(value) is float else f"{name} = {value!r}" for name, value in case.items()
        ]
        return "\n".join([*rows, f"step_s is asked with buckets = {case['buckets']}, and then with 1"])


def _intensity_mistake(case: Any, got: float, want: float) -> Wrong:
    nodes, ratio = case["nodes"], got / want
    behind = case["behind"]
    known = [
        (1.5, behind == "backward", "the forward pass was counted too", "before it ends there is nothing to send"),
        (3.0, behind != "backward", "forward and backward pass were counted", "one product has nothing after it"),
        (0.5, behind == "backward", "half of the FLOPs that can hide it were counted", "two products for each weight"),
        (2.0, behind != "backward", "the FLOPs were counted twice, or half of the traffic", "one product; two rounds"),
        (2.0, True, "only half of the ring's traffic was counted", "sums go round, and then the results"),
        (float(nodes), True, "the whole batch was given to each node", "data parallelism splits it"),
        (case["itemsize"] / 4, True, "4 bytes a weight were assumed", "use itemsize"),
        (0.5, True, "a multiply-add was counted as one operation", "a·b + c: how many operations?"),
        (2 * (nodes - 1) / nodes, nodes > 2, "every weight was sent once", "how often does a ring send each part?"),
        ((nodes - 1) / nodes, nodes > 2, "every weight was sent twice", "a ring of P takes P - 1 rounds, not P"),
        (2 / nodes, nodes > 2, "every node sent to every other one", "on a ring, a node sends only to its neighbour"),
        (1 / nodes, nodes > 2, "all weights went round in every round", "in a round, a node sends a P-th of them"),
    ]
    if close(got * want, 1.0):
        return Wrong(
            "that is bytes per FLOP",
            why=f"{say(got)} came back for {nodes} nodes",
            next="an intensity has the unit FLOP/B",
        )
    for factor, applies, what, then in known:
        if applies and factor != 1 and close(ratio, factor):
            return Wrong(what, why=f"{say(got)} FLOP/B came back for {nodes} nodes", next=then)
    return Wrong(
        "the intensity against the network is wrong",
        why=f"{say(got)} FLOP/B came back for {nodes} nodes",
        next="per weight: the FLOPs of one node that can hide the sending, over the bytes that one node sends",
    )


def _step_mistake(case: Any, name: str, got: float, want: Any) -> Wrong:
    buckets = case["buckets"] if name == "step_s" else 1
    asked = f"with {counted(buckets, 'bucket')}"
    for value, applies, what, then in _known_steps(case, name, got, want):
        if applies and value and close(got, value) and not close(value, want[name]):
            return Wrong(what, why=f"{asked}, {say(got)} s came back", next=then)
    why = f"{asked}, it is {say(got / want[name])} times what it should be"
    return Wrong(
        "the time of a step is wrong", why=why, next="compute forward, backward and sending apart; then combine"
    )


_COMPUTED_FIRST = "a bucket is sent once all of it is computed; one bucket is, when the backward pass ends"
_GOES_ON = "while a bucket travels, the node goes on with the next one's gradients"
_LEFT_OVER = "only the last bucket was left over when the backward pass ended"
_TO_ITSELF = "a node sent its own part to itself"


def _known_steps(case: Any, name: str, got: float, want: Any) -> list[tuple[float, bool, str, str]]:
    """Steps that mistakes give: seconds, whether they can be meant here, what is wrong, and what to look at."""
    backward_s = 4 * case["weights"] * case["batch"] / case["nodes"] / case["node_flop_per_s"]
    send_s, forward_s = want["added_s"] - 1.5 * backward_s, backward_s / 2
    one, hidden_s = name == "added_s", forward_s + max(backward_s, send_s)
    half = "the forward pass was left out, or the backward pass counted as one product"
    first = "sending began before the first bucket was finished"
    last = "the last bucket was sent before it was finished"
    # What one product more or less takes is seen whole where the backward pass is the longer, else in one bucket of it.
    shares = (forward_s, forward_s / (1 if one else case["buckets"]))
    return [
        (hidden_s, one, "the network was hidden although nothing overlaps", _COMPUTED_FIRST),
        (want["added_s"], not one, "with buckets, times were added", _GOES_ON),
        (hidden_s, send_s > backward_s, first, "draw a link that is slower than the arithmetic"),
        (hidden_s, True, last, "draw a link that is faster than the arithmetic"),
        (max(3 * forward_s, send_s), True, "gradients were sent before the backward pass began", "what exists then?"),
        (got, case["nodes"] == 1 and got > want[name], "a single node was made to send", "to whom?"),
        (want[name] * case["nodes"], True, "the batch was not split", "each node has its share of it"),
        *((want[name] - share, True, half, "forward is one product for each weight, backward two") for share in shares),
        (
            3 * forward_s + send_s / 2,
            one,
            "a step sent half of the ring's traffic",
            "sums go round, and then the results",
        ),
        (
            3 * forward_s + send_s * case["nodes"] / max(1, case["nodes"] - 1),
            one,
            _TO_ITSELF,
            "who has its part already?",
        ),
        (3 * forward_s + send_s * 4 / case["itemsize"], one, "a step sent 4 bytes a weight", "use itemsize"),
        (3 * forward_s + send_s / case["itemsize"], one, "a step sent elements, not bytes", "use itemsize"),
        (1.5 * forward_s + send_s, one, "a step's multiply-adds were one operation each", "a·b + c: how many?"),
        (3 * forward_s + 8 * send_s, one, "the link's rate was taken for bit/s", "link_byte_per_s is in bytes"),
        (
            want[name] + (case["buckets"] - 1) * send_s,
            not one and send_s > backward_s,
            "each bucket sent all of the gradients",
            "how much of them is in a bucket?",
        ),
        (
            3 * forward_s + send_s / case["buckets"],
            not one and send_s > backward_s,
            _LEFT_OVER,
            "a link that needs longer than the backward pass has more than one bucket left",
        ),
        (3 * forward_s, True, "the network was left out", "how long does one node send?"),
    ]
