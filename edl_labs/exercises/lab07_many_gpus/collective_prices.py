"""pick_collective: what an all-reduce costs by four algorithms, sums and levels of links included, and the cheapest."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, close, exercise
from edl_labs.errors import Wrong
from edl_labs.units import byte_count, byte_rate, counted, seconds

ALGORITHMS = ("ring", "tree", "halving-doubling", "hierarchical")
_FREE = 1e40  # bytes per second: what moves or is added at this rate costs nothing
_NOTHING = 1e-9  # of a round or a message: what rounding leaves
# What is asked with all the rest free: rounds by level, the share of the message that moves, and what is added up.
_MOVED = ("rounds", "bytes")
_PARTS = ("rounds inside", "rounds between", "bytes inside", "bytes between", "bytes added")


@exercise("pick_collective")
class PickCollective(Exercise):
    """The seconds of an all-reduce by each algorithm on a cluster of two levels, and the cheapest one's name.

    `price(algorithm, job)` gives seconds, `pick(job)` a name. The evidence has the prices, and what each consists of.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        def asked(job: Any) -> dict[str, float]:
            return {name: student.price(name, _copied(job)) for name in ALGORITHMS}

        parts = {part: asked(_alone(given, part)) for part in _PARTS}
        return {"seconds": asked(given), "parts": parts, "pick": student.pick(_copied(given))}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        for name in ALGORITHMS:
            if close(got["seconds"][name], want["seconds"][name]):
                continue
            raise _price_symptom(case, name, got, want)
        prices, chosen = want["seconds"], got["pick"]
        if chosen not in prices:
            then = f"return one of {', '.join(prices)}"
            raise Wrong(
                "your function picks a name that no algorithm has",
                why=f"pick() returned {str(chosen)[:40]!r}",
                next=then,
            )
        if prices[chosen] > min(prices.values()) * (1 + 1e-6):
            best = min(prices, key=prices.get)
            took, least = (seconds(prices[name], digits=7) for name in (chosen, best))
            why = f"{chosen} takes {took}, but {best} takes {least}; your prices are right"
            raise Wrong(
                "your function does not pick the cheapest algorithm",
                why=why,
                next="compare the seconds of all four algorithms",
            )

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """What all picks have in common, where the prices are right."""
        pairs = [(mine["pick"], right["seconds"]) for mine, right in zip(got, want, strict=True)]
        for mine, right in zip(got, want, strict=True):
            if any(not close(mine["seconds"][name], right["seconds"][name]) for name in ALGORITHMS):
                return None
        if any(pick not in prices for pick, prices in pairs):
            return None
        if all(close(prices[pick], max(prices.values())) for pick, prices in pairs):
            then = "pick the cheapest of the four: min, not max"
            why = "your prices are right, but in every case you pick the algorithm with the highest price"
            return Wrong("your function picks the most expensive algorithm", why=why, next=then)
        rounds = [{name: _both_levels(right["parts"], "rounds", name) for name in ALGORITHMS} for right in want]
        if all(close(one[pick], min(one.values())) for one, (pick, _) in zip(rounds, pairs, strict=True)):
            why = "your prices are right, but the algorithm with the fewest rounds is not always the fastest"
            then = "compare the prices: bytes take time as well"
            return Wrong("your function always picks the algorithm with the fewest rounds", why=why, next=then)
        for never in ALGORITHMS:
            for where, others in (
                ("", [True] * len(cases)),
                (" where P is not a power of two", _no_power_of_two(cases)),
            ):
                if found := _never_picked(never, where, others, pairs):
                    return found
        return None

    def format_answer(self, case: Any, got: Any) -> str:
        """The prices, and the choice."""
        prices = ", ".join(f"{name} {seconds(value)}" for name, value in got["seconds"].items())
        return f"{prices}; picked: {got['pick']}"

    def format_case(self, case: Any) -> str:
        """The cluster and the message."""
        links = "; ".join(
            f"{where} {seconds(case[where]['alpha_s'])} and {byte_rate(case[where]['byte_per_s'])}"
            for where in ("inside", "between")
        )
        return (
            f"{byte_count(case['message_bytes'])} on {case['nodes']} x {case['ranks_per_node']} ranks; {links}; added "
            f"up at {byte_rate(case['sum_byte_per_s'])}"
        )


def _no_power_of_two(cases: list[Any]) -> list[bool]:
    counts = [case["nodes"] * case["ranks_per_node"] for case in cases]
    return [count & (count - 1) > 0 for count in counts]


def _never_picked(
    never: str, where: str, without: list[bool], pairs: list[tuple[str, dict[str, float]]]
) -> Wrong | None:
    """Whether every pick is the cheapest, but for one algorithm that is left out in some cases, and cheapest in one."""
    missed = 0
    for (pick, prices), is_out in zip(pairs, without, strict=True):
        least = min(price for name, price in prices.items() if not is_out or name != never)
        if (is_out and pick == never) or not close(prices[pick], least):
            return None
        missed += is_out and prices[never] < least * (1 - 1e-6)
    if not missed:
        return None
    why = f"{never} is the cheapest in {missed} of these {sum(without)} cases, but you pick the cheapest of the others"
    return Wrong(f"your function never picks {never}{where}", why=why, next="compare all names in ALGORITHMS")


def _copied(job: Any) -> Any:
    return {**job, "inside": {**job["inside"]}, "between": {**job["between"]}}


def _alone(case: Any, part: str) -> Any:
    """The same job where all but one thing is free; a round, or a whole message, then costs a second."""
    job = {**case, "sum_byte_per_s": _FREE}
    for where in ("inside", "between"):
        job[where] = {
            "alpha_s": float(part == f"rounds {where}"),
            "byte_per_s": float(case["message_bytes"]) if part == f"bytes {where}" else _FREE,
        }
    if part == "bytes added":
        job["sum_byte_per_s"] = float(case["message_bytes"])
    return job


def _price_symptom(case: Any, name: str, got: Any, want: Any) -> Wrong:
    """The sentence for a price: for a part of it where that part, or all that differ, make up the difference."""
    price_s, right_s = got["seconds"][name], want["seconds"][name]
    parts = [(part, got["parts"][part][name], want["parts"][part][name]) for part in _PARTS]
    off = [one for one in parts if not close(*one[1:], atol=_NOTHING)]
    costs_s = {part: (found - right) * _unit_s(case, part) for part, found, right in off}
    totals = {what: [_both_levels(one["parts"], what, name) for one in (got, want)] for what in _MOVED}
    alone = [one for one in off if close(costs_s[one[0]], price_s - right_s)]
    if alone or (off and close(sum(costs_s.values()), price_s - right_s)):
        return _part_symptom(case, name, *(alone or off)[0], totals)
    found, due = (seconds(one, digits=7) for one in (price_s, right_s))
    why = f"{name} on {case['nodes']} x {case['ranks_per_node']} ranks: got {found}, expected {due}"
    if not off:
        why = f"{why}; each part on its own is right"
        then = "add the parts up: rounds, transfers and additions run one after another"
        return Wrong("your price is not the sum of its parts", why=why, next=then)
    then = "add up this algorithm's rounds by hand: α, bytes / rate and, in the first half, bytes / sum_byte_per_s"
    return Wrong("your price is wrong", why=why, next=then)


def _unit_s(case: Any, part: str) -> float:
    """What a round, or a whole message, costs in a case."""
    what, _, where = part.partition(" ")
    size = float(case["message_bytes"])
    if where == "added":
        return size / float(case["sum_byte_per_s"])
    return float(case[where]["alpha_s"]) if what == "rounds" else size / float(case[where]["byte_per_s"])


def _both_levels(parts: Any, what: str, name: str) -> float:
    """What an algorithm has of rounds or bytes, inside nodes and between them together."""
    return sum(parts[f"{what} {where}"][name] for where in ("inside", "between"))


def _part_symptom(case: Any, name: str, part: str, found: float, right: float, both: Any) -> Wrong:
    """The sentence about one part; `both` has the rounds and bytes, found and right, of both levels together."""
    what, _, where = part.partition(" ")
    found, right = (0.0 if abs(one) < _NOTHING else one for one in (found, right))
    verb = "adding up" if where == "added" else "sending"
    amount, due = (counted(one, "round") if what == "rounds" else _times_the_size(one) for one in (found, right))
    counts = amount if what == "rounds" else f"{verb} {amount}" if found else f"no {verb}"
    place = "" if where == "added" else f" {where} nodes"
    why = f"{name} on {case['nodes']} x {case['ranks_per_node']} ranks: your price includes {counts}{place}"
    if where == "added":
        return _added_symptom(why, found, right)
    totals = both[what]
    if name == "hierarchical" and where == "inside" and found < _NOTHING and close(*totals, atol=_NOTHING):
        return Wrong(
            "your price sends messages inside a node over the slow links", why=why, next="which ranks share a node?"
        )
    if name != "hierarchical" and case["nodes"] == 1 and not found and totals[0] > _NOTHING:
        why = f"{name} on 1 x {case['ranks_per_node']} ranks: your price includes nothing on the links inside the node"
        then = "use the links inside: with a single node, no message crosses to another node"
        return Wrong("your price uses the links between nodes for the messages of a single node", why=why, next=then)
    if name == "halving-doubling" and _is_of_the_power_above(case, *(both[one][0] for one in _MOVED)):
        why = f"{why}, as if there were {_power_above(case)} ranks"
        then = "let Q be the power of two below P: ranks beyond Q send their data to a partner, and get the sum back"
        return Wrong("your price uses a power of two that is larger than the number of ranks", why=why, next=then)
    if name != "hierarchical" and close(*totals, atol=_NOTHING):
        if (found < right) == (where == "inside"):
            then = "use the links inside: partners at a distance below ranks_per_node are on the same node"
            return Wrong("your price uses the links between nodes for rounds that stay in a node", why=why, next=then)
        then = "a round is as slow as its slowest message: how far away is a partner, and is it on the same node?"
        return Wrong("your price uses the wrong links for rounds that cross nodes", why=why, next=then)
    if close(2 * totals[0], totals[1]):
        then = "add the second half: every rank must get the finished sums"
        return Wrong("your price leaves out the second half of the all-reduce", why=why, next=then)
    return _SYMPTOMS[name](case, what, where, f"{why}; expected {due}", found, both)


def _times_the_size(times: float) -> str:
    return "the message's size once" if times == 1 else f"{times:g} times the message's size"


def _power_above(case: Any) -> int:
    return 1 << (case["nodes"] * case["ranks_per_node"] - 1).bit_length()


def _is_of_the_power_above(case: Any, rounds: float, moved: float) -> bool:
    """Whether the price is that of halving-doubling among more ranks, of which some do not exist."""
    ranks, above = case["nodes"] * case["ranks_per_node"], _power_above(case)
    log = above.bit_length() - 1
    parts = [(2 * (log + more), 2 * (1 - 1 / above + more)) for more in (0, 1)]  # with the ranks beyond, or without
    return ranks < above and any(close(rounds, one) and close(moved, other) for one, other in parts)


def _added_symptom(why: str, found: float, right: float) -> Wrong:
    if found < _NOTHING:
        return Wrong(
            "your price leaves out the time for adding up",
            why=why,
            next="include the time for adding up what arrives in the first half",
        )
    if close(found, 2 * right):
        then = "price additions only in the first half: after that, finished sums replace the old values"
        return Wrong("your price includes additions in the second half, too", why=why, next=then)
    then = "how many bytes arrive in each round of the first half?"
    return Wrong("your price adds up the wrong number of bytes", why=why, next=then)


def _of_ring(case: Any, what: str, where: str, why: str, found: float, both: Any) -> Wrong:
    ranks = case["nodes"] * case["ranks_per_node"]
    if what == "rounds" and close(found, 2 * ranks):
        then = "end each half after P - 1 rounds: by then a chunk has visited all ranks"
        return Wrong("in your price, each half of the ring has P rounds instead of P - 1", why=why, next=then)
    if what == "rounds" and found <= 2:
        return Wrong(
            "your price of the ring does not include alpha in every round",
            why=why,
            next="how many rounds does a ring have?",
        )
    if what == "rounds":
        return Wrong(
            "your price of the ring includes the wrong number of rounds",
            why=why,
            next="count P - 1 rounds in each of the two halves",
        )
    then = "price one P-th of the message in each round"
    return Wrong("your price of the ring includes the wrong number of bytes", why=why, next=then)


def _of_tree(case: Any, what: str, where: str, why: str, found: float, both: Any) -> Wrong:
    ranks = case["nodes"] * case["ranks_per_node"]
    whole = ranks.bit_length() - 1
    if what == "rounds" and ranks > 1 << whole and close(both["rounds"][0], 2 * whole):
        then = "round up log2 P: after r rounds a sum covers at most 2^r ranks"
        return Wrong(
            "your price rounds log2 P down where P is not a power of two", why=f"{why}; P is {ranks}", next=then
        )
    if what == "rounds" or close(found, 2 * int(found / 2 + 0.5)):
        then = "after r rounds a sum covers up to 2^r ranks: after how many rounds does it cover all of them?"
        return Wrong("your price of the tree includes the wrong number of rounds", why=why, next=then)
    then = "price the whole message in every round: a tree does not cut it into chunks"
    return Wrong("your price of the tree includes the wrong number of bytes", why=why, next=then)


def _of_halving(case: Any, what: str, where: str, why: str, found: float, both: Any) -> Wrong:
    ranks = case["nodes"] * case["ranks_per_node"]
    power = 1 << (ranks.bit_length() - 1)
    if ranks > power and all(close(both[one][0] + 2, both[one][1]) for one in _MOVED):
        then = (
            "price two more rounds: these ranks first send all their data to a partner, and get the sum back at the end"
        )
        return Wrong("your price leaves out the ranks beyond a power of two", why=why, next=then)
    if what == "rounds":
        then = "count the distances 1, 2, 4, ... below Q in each half; if P is not Q, add one round to each half"
        return Wrong("your price of halving-doubling includes the wrong number of rounds", why=why, next=then)
    then = "price a half, a quarter, ... of the message; if P is not a power of two, add a round of the whole message"
    rounds, beyond = power.bit_length() - 1, 2 * (ranks > power)
    if any(close(both["bytes"][0], beyond + 2 * rounds * part) for part in (1, 0.5, 1 / power, 1 / ranks)):
        return Wrong("your price does not halve the messages from round to round", why=why, next=then)
    return Wrong("your price of halving-doubling includes the wrong number of bytes", why=why, next=then)


def _of_hierarchical(case: Any, what: str, where: str, why: str, found: float, both: Any) -> Wrong:
    if where == "between" and what == "bytes" and both["bytes"][0] > both["bytes"][1]:
        then = "which share of its node's sums does each rank have after the first step?"
        return Wrong("your price includes too many bytes between nodes", why=why, next=then)
    then = "price one ring inside the nodes and one between them"
    return Wrong("your price of hierarchical is wrong inside nodes or between nodes", why=why, next=then)


_SYMPTOMS = dict(zip(ALGORITHMS, (_of_ring, _of_tree, _of_halving, _of_hierarchical), strict=True))
