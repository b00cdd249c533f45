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
            "your code ignores `behind`",
            why="your code counts the FLOPs of the whole backward pass even where only the weight "
            "gradient hides the sending",
            next="which of the two products of each weight can hide the sending?",
        )

    def format_case(self, case: Any) -> str:
        rows = [
            f"{name} = {value:g}" if type(value) is float else f"{name} = {value!r}" for name, value in case.items()
        ]
        return "\n".join([*rows, f"step_s is called with buckets = {case['buckets']}, and then with 1"])


def _intensity_mistake(case: Any, got: float, want: float) -> Wrong:
    nodes, ratio = case["nodes"], got / want
    behind = case["behind"]
    known = [
        (
            1.5,
            behind == "backward",
            "your code counts the forward pass, too",
            "leave the forward pass out: before it ends, there is nothing to send",
        ),
        (
            3.0,
            behind != "backward",
            "your code counts the forward and the backward pass",
            "count only the product of the weight gradient",
        ),
        (
            0.5,
            behind == "backward",
            "your code counts only half of the FLOPs that can hide the sending",
            "count two products for each weight",
        ),
        (
            2.0,
            behind != "backward",
            "your code counts the FLOPs twice, or only half of the traffic",
            "count the FLOPs of one product per weight, but the bytes of both trips around the ring: "
            "first the sums, then the results",
        ),
        (
            2.0,
            True,
            "your code counts only half of the ring's traffic",
            "count both trips around the ring: first the sums, then the results",
        ),
        (float(nodes), True, "your code gives the whole batch to each node", "split the batch among the nodes"),
        (case["itemsize"] / 4, True, "your code assumes 4 bytes per weight", "use itemsize"),
        (0.5, True, "your code counts a multiply-add as one operation", "how many operations are in a·b + c?"),
        (
            2 * (nodes - 1) / nodes,
            nodes > 2,
            "your code sends every weight once",
            "how many times does a ring send each part?",
        ),
        (
            (nodes - 1) / nodes,
            nodes > 2,
            "your code sends every weight twice",
            "for a ring of P nodes, use P - 1 rounds per trip, not P",
        ),
        (
            2 / nodes,
            nodes > 2,
            "in your count, a node sends to all other nodes",
            "let a node on the ring send only to its neighbour",
        ),
        (
            1 / nodes,
            nodes > 2,
            "your code sends all weights in every round",
            "what share of the weights does a node send in a round?",
        ),
    ]
    if close(got * want, 1.0):
        return Wrong(
            "your answer is in bytes per FLOP",
            why=f"your function returned {say(got)} for {nodes} nodes",
            next="return an intensity, in FLOP/B",
        )
    for factor, applies, what, then in known:
        if applies and factor != 1 and close(ratio, factor):
            return Wrong(what, why=f"your function returned {say(got)} FLOP/B for {nodes} nodes", next=then)
    return Wrong(
        "the intensity against the network is wrong",
        why=f"your function returned {say(got)} FLOP/B for {nodes} nodes",
        next="for each weight, divide the FLOPs of one node that can hide the sending by the bytes that one node sends",
    )


def _step_mistake(case: Any, name: str, got: float, want: Any) -> Wrong:
    buckets = case["buckets"] if name == "step_s" else 1
    asked = f"with {counted(buckets, 'bucket')}"
    for value, applies, what, then in _known_steps(case, name, got, want):
        if applies and value and close(got, value) and not close(value, want[name]):
            return Wrong(what, why=f"{asked}, your function returned {say(got)} s", next=then)
    why = f"{asked}, your time is {say(got / want[name])} times what it should be"
    return Wrong(
        "the time of a step is wrong",
        why=why,
        next="compute the times of forward, backward and sending separately, then combine them",
    )


_COMPUTED_FIRST = "a bucket is sent once all of it is computed: when is that, if there is only one bucket?"
_GOES_ON = "while a bucket is being sent, what does the node compute?"
_LEFT_OVER = "in your code, only the last bucket is left to send when the backward pass ends"
_TO_ITSELF = "your node sends its own part to itself"


def _known_steps(case: Any, name: str, got: float, want: Any) -> list[tuple[float, bool, str, str]]:
    """Steps that mistakes give: seconds, whether they can be meant here, what is wrong, and what to look at."""
    backward_s = 4 * case["weights"] * case["batch"] / case["nodes"] / case["node_flop_per_s"]
    send_s, forward_s = want["added_s"] - 1.5 * backward_s, backward_s / 2
    one, hidden_s = name == "added_s", forward_s + max(backward_s, send_s)
    half = "your code leaves out the forward pass, or counts the backward pass as one product"
    first = "your code begins to send before the first bucket is finished"
    last = "your code sends the last bucket before it is finished"
    # What one product more or less takes is seen whole where the backward pass is the longer, else in one bucket of it.
    shares = (forward_s, forward_s / (1 if one else case["buckets"]))
    return [
        (
            hidden_s,
            one,
            "your code hides sending behind computing, but with one bucket nothing overlaps",
            _COMPUTED_FIRST,
        ),
        (
            want["added_s"],
            not one,
            "your code adds up the times of computing and sending, but with several buckets they overlap",
            _GOES_ON,
        ),
        (hidden_s, send_s > backward_s, first, "draw the case of a link that is slower than the arithmetic"),
        (hidden_s, True, last, "draw the case of a link that is faster than the arithmetic"),
        (
            max(3 * forward_s, send_s),
            True,
            "your code sends gradients before the backward pass begins",
            "which gradients exist by then?",
        ),
        (
            got,
            case["nodes"] == 1 and got > want[name],
            "your code makes a single node send",
            "to which node would it send?",
        ),
        (
            want[name] * case["nodes"],
            True,
            "your code does not split the batch",
            "give each node its share of the batch",
        ),
        *(
            (
                want[name] - share,
                True,
                half,
                "count one product per weight in the forward pass, and two in the backward pass",
            )
            for share in shares
        ),
        (
            3 * forward_s + send_s / 2,
            one,
            "your step sends half of the ring's traffic",
            "count both trips around the ring: first the sums, then the results",
        ),
        (
            3 * forward_s + send_s * case["nodes"] / max(1, case["nodes"] - 1),
            one,
            _TO_ITSELF,
            "which node already has this part?",
        ),
        (3 * forward_s + send_s * 4 / case["itemsize"], one, "your step sends 4 bytes per weight", "use itemsize"),
        (3 * forward_s + send_s / case["itemsize"], one, "your step sends elements, not bytes", "use itemsize"),
        (
            1.5 * forward_s + send_s,
            one,
            "your step counts a multiply-add as one operation",
            "how many operations are in a·b + c?",
        ),
        (
            3 * forward_s + 8 * send_s,
            one,
            "your code takes the link's rate to be in bit/s",
            "use link_byte_per_s as bytes per second",
        ),
        (
            want[name] + (case["buckets"] - 1) * send_s,
            not one and send_s > backward_s,
            "each of your buckets sends all gradients",
            "what share of the gradients is in one bucket?",
        ),
        (
            3 * forward_s + send_s / case["buckets"],
            not one and send_s > backward_s,
            _LEFT_OVER,
            "how many buckets are still to be sent after the backward pass if the link takes longer than that pass?",
        ),
        (3 * forward_s, True, "your code leaves out the network", "how long does one node send?"),
    ]
