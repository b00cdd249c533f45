"""bucket_sampler: the waste of padding, and the randomness that a cheaper order costs."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.pipeline.batching import bucket_batches
from edl_labs.units import percent

WASTE_SHARE = 1 / 2  # this and the next two: promised in the lab's text
MOST_MATES = 0.4  # see above
MOST_ALIKE = 0.6  # see above
_SINGLE = ("untold", "once_more", "resumed", "other", "other_next", "later")  # epochs that a probe gives one by one
_SCRIPTS_SEED = 20_011  # of a script around the sampler; any that no sampler is likely to take
_SEED_BITS = 12  # of a seed that the script draws: some samplers multiply it by a large number, and stay below 2³²


@exercise("bucket_sampler")
class BucketSampler(Exercise):
    """Batches of like lengths: little waste, every sample once, repeatable, and still shuffled.

    `student.BucketSampler(lengths, batch_size=, seed=)`: batches of indices, little padding, still shuffled.
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        try:
            return {**self._seen(student, given), "returned": "", "came": ""}
        except _NoBatches as instead:
            return {**self.answer_form, **dict(instead.args)}

    def _seen(self, student: Any, case: Any) -> dict[str, Any]:
        def drawn(seed: int, *epochs: int) -> list[list[list[int]]]:
            sampler = student.BucketSampler(list(case["lengths"]), batch_size=case["batch_size"], seed=seed)
            return [_epoch(sampler, epoch) for epoch in epochs]

        seed = case["seed"]
        _seed_all()
        with _withheld(bucket_batches):
            sampler = student.BucketSampler(list(case["lengths"]), batch_size=case["batch_size"], seed=seed)
            other, other_next = drawn(seed + 1, 0, 1)
            return {
                "length": len(sampler),
                "untold": _batches(sampler),
                "once_more": _batches(sampler),
                "epochs": drawn(seed, 0, 1, 0),
                "resumed": _as_elsewhere(drawn, seed, 1)[0],
                "other": other,
                "other_next": other_next,
                "later": drawn(seed, 2)[0],
                "by_script": [drawn(draw(), 0)[0] for draw in _shared_draws()],
                "by_seed": [drawn(seed, 0)[0] for seed in _script_seeds()],
            }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        _refuse_no_batches(got)
        if len(got["epochs"]) != 3:
            raise Wrong(
                "one of your epochs is missing",
                why="expected three epochs",
                next="yield a whole epoch on each iteration",
            )
        for batches in (*got["epochs"], *got["by_script"], *got["by_seed"], *(got[name] for name in _SINGLE)):
            _refuse_no_permutation(case, batches)
        if got["length"] != len(got["epochs"][0]):
            raise Wrong(
                "len() is not the number of batches",
                why=f"it returned {got['length']}, but iterating gave {len(got['epochs'][0])} batches",
                next="count the last batch too, even if it is smaller",
            )
        _refuse_wrong_seeds(got)
        _refuse_disturbed(got)
        for batches in (*got["epochs"][:2], got["later"]):
            _refuse_waste(case, batches)
            _refuse_order(case, batches)
        _refuse_mates(got["epochs"][0], got["epochs"][1])

    def public_want(self, case: Any, want: Any) -> Any:
        """Nothing: the question is properties, and the reference's batches are only one way to have them."""
        return {}

    answer_form: ClassVar[Any] = {
        "length": 0,
        "epochs": [[[0]]],
        "by_script": [[[0]]],
        "by_seed": [[[0]]],
        "returned": "",
        "came": "",
        **{name: [[0]] for name in _SINGLE},
    }

    def format_case(self, case: Any) -> str:
        return f"{len(case['lengths'])} lengths from {min(case['lengths'])} to {max(case['lengths'])}, batches of " + (
            f"{case['batch_size']}, seed {case['seed']}"
        )


def _epoch(sampler: Any, epoch: int) -> list[list[int]]:
    sampler.set_epoch(epoch)
    return _batches(sampler)


class _NoBatches(Exception):
    """("returned", the type of what `__iter__` returned, no iterator), or ("came", what came in place of a batch)."""


def _batches(sampler: Any) -> list[list[int]]:
    try:
        batches = list(sampler)
    except TypeError as error:
        kind = str(error).partition("iter() returned non-iterator of type ")[2].strip("'")
        # Python says so here, and not in a line of the student's.
        if kind and error.__traceback__ is not None and error.__traceback__.tb_next is None:
            raise _NoBatches(("returned", kind)) from None
        raise
    for batch in batches:
        if not hasattr(batch, "__iter__") or isinstance(batch, str) or getattr(batch, "ndim", 1) == 0:
            raise _NoBatches(("came", f"{str(batch)[:20]}, of type {type(batch).__name__}"))
    return [list(batch) for batch in batches]


def _as_elsewhere(work: Callable[..., Any], *arguments: Any) -> Any:
    """What `work` gives where text hashes to other numbers, as it does in each process."""
    own = builtins.hash

    def salted(value: Any) -> int:
        return own(("another process", value)) if _hashes_by_process(value) else own(value)

    builtins.hash = salted
    try:
        return work(*arguments)
    finally:
        builtins.hash = own


def _hashes_by_process(value: Any) -> bool:
    if isinstance(value, tuple | frozenset):
        return any(map(_hashes_by_process, value))
    return isinstance(value, str | bytes)


@contextmanager
def _withheld(function: Any) -> Iterator[None]:
    """A library function that is the exercise raises while the probe runs, whatever name it was imported under."""

    def refused(*_: Any, **__: Any) -> None:
        raise TypeError("edl_labs.pipeline.bucket_batches is what this exercise asks you to write")

    function = inspect.unwrap(function)
    own, function.__code__ = function.__code__, refused.__code__
    try:
        yield
    finally:
        function.__code__ = own


def _seed_all() -> None:
    """What a training script does once, at its beginning."""
    import random

    import numpy as np
    import torch

    random.seed(_SCRIPTS_SEED)
    np.random.seed(_SCRIPTS_SEED)
    torch.manual_seed(_SCRIPTS_SEED)


def _shared_draws() -> list[Callable[[], int]]:
    """How a script draws the seed of its next sampler: from each of the three generators that all of it shares."""
    import random

    import numpy as np
    import torch

    return [
        lambda: random.getrandbits(_SEED_BITS),
        lambda: int(np.random.randint(1 << _SEED_BITS)),
        lambda: int(torch.randint(1 << _SEED_BITS, (1,))),
    ]


def _script_seeds() -> list[int]:
    """What `_shared_draws` give where nothing but the script has seeded or drawn from a shared generator."""
    import random

    import numpy as np
    import torch

    generator = torch.Generator().manual_seed(_SCRIPTS_SEED)
    return [
        random.Random(_SCRIPTS_SEED).getrandbits(_SEED_BITS),
        int(np.random.RandomState(_SCRIPTS_SEED).randint(1 << _SEED_BITS)),
        int(torch.randint(1 << _SEED_BITS, (1,), generator=generator)),
    ]


def waste(lengths: list[int], batches: list[list[int]]) -> float:
    """The share of a run's positions that hold padding, exactly."""
    asked = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
    return (asked - sum(lengths[i] for batch in batches for i in batch)) / asked


def mates(one: list[list[int]], other: list[list[int]]) -> float:
    """The share of pairs that shared a batch in one epoch and share one in the other again."""
    place = {index: number for number, batch in enumerate(other) for index in batch}
    pairs = [(a, b) for batch in one for i, a in enumerate(batch) for b in batch[:i]]
    return sum(place[a] == place[b] for a, b in pairs) / max(1, len(pairs))


def neighbours_alike(lengths: list[int], batches: list[list[int]]) -> float:
    """The rank correlation between the longest of each batch and that of the next one."""
    import numpy as np

    longest = np.array([max(lengths[i] for i in batch) for batch in batches], dtype=float)
    ranks = longest.argsort(kind="stable").argsort(kind="stable")
    return float(np.corrcoef(ranks[:-1], ranks[1:])[0, 1])


def _refuse_no_batches(got: Any) -> None:
    if got["returned"]:
        kind = {"NoneType": "None", "list": "a list", "tuple": "a tuple"}.get(got["returned"], got["returned"][:40])
        raise Wrong(
            f"`__iter__` returned {kind} instead of an iterator",
            why="a list can be iterated over, but it is not an iterator: next() does not work on it",
            next="write `return iter(batches)`, or `yield` each batch in `__iter__`",
        )
    if got["came"]:
        then = "yield each batch as one list of indices, instead of its indices one by one"
        raise Wrong(
            "your sampler gave something other than batches", why=f"one of the items is {got['came'][:80]}", next=then
        )


def _refuse_no_permutation(case: Any, batches: Any) -> None:
    flat = [index for batch in batches for index in batch]
    count, size = len(case["lengths"]), case["batch_size"]
    if sorted(map(str, flat)) == sorted(map(str, case["lengths"])):
        why = f"the first batch is {str(batches[0])[:60]}"
        raise Wrong(
            "your batches contain lengths, not indices",
            why=why,
            next="put each sample's index in `lengths` into a batch, not its length",
        )
    if sorted(flat) != list(range(count)):
        twice = len(flat) - len(set(flat))
        raise Wrong(
            "an epoch of your sampler is not a permutation",
            why=f"of {count} samples, {count - len(set(flat) & set(range(count)))} are missing and {twice} are "
            "repeated",
            next="yield every index exactly once per epoch, including the last ones",
        )
    largest = max(map(len, batches))
    if largest > size:
        raise Wrong(
            "one of your batches has more samples than batch_size",
            why=f"the largest has {largest}; batch_size is {size}",
            next="put batch_size samples into every batch except one, which may have fewer",
        )
    short = [len(batch) for batch in batches if len(batch) < size]
    if len(short) > 1 or [] in batches:
        raise Wrong(
            "more than one of your batches is not full",
            why=f"iterating gave {len(batches)} batches, {len(short)} of them with fewer than {size} samples; {count} "
            f"samples make {-(-count // size)} batches, all full but one",
            next="a pool or bucket whose size is not a multiple of batch_size leaves a batch that is not full: cut "
            "pools of whole batches, so that only the last pool leaves a remainder",
        )


def _refuse_wrong_seeds(got: Any) -> None:
    first, second, again = got["epochs"]
    if first != again or got["resumed"] != second:
        raise Wrong(
            "your sampler gave different orders for the same seed and epoch",
            why="a run that stops in epoch 1 and resumes there, in another process, would see different batches",
            next="make a new generator from seed and epoch for every epoch, and use no other randomness; hash() of a "
            "string differs from process to process",
        )
    if got["once_more"] == second != got["untold"]:
        raise Wrong(
            "your sampler moves on to the next epoch on its own",
            why="iterating twice gave epoch 0 and then epoch 1 without a call to set_epoch()",
            next="change the epoch only in set_epoch()",
        )
    if got["once_more"] != got["untold"]:
        raise Wrong(
            "iterating over your sampler again gave a different order",
            why="the epoch had not changed: a second pass over the same epoch would see different batches",
            next="make the generator where iteration begins, not where the epoch is set",
        )
    if got["untold"] != first:
        raise Wrong(
            "before any call to set_epoch(), your sampler's epoch is not 0",
            why="a new sampler gave different batches than it does after set_epoch(0)",
            next="set the epoch to 0 in __init__",
        )
    if first == second:
        raise Wrong(
            "your sampler gives every epoch the same order",
            why="epochs 0 and 1 are identical",
            next="make the epoch part of the generator's seed",
        )
    if got["later"] in (first, second):
        raise Wrong(
            "your epochs repeat",
            why="epoch 2 has the same batches as an earlier epoch",
            next="put the epoch's number into the generator's seed, not only whether it is the first, or odd",
        )
    if first == got["other"] and second != got["other_next"]:
        raise Wrong(
            "your sampler ignores the seed in epoch 0",
            why="two seeds gave the same batches in epoch 0, but different ones in epoch 1",
            next="0 times any seed is 0: join seed and epoch into one string, and seed the generator with that",
        )
    if first == got["other"]:
        raise Wrong(
            "your sampler ignores the seed", why="two seeds gave the same batches", next="draw from a seeded generator"
        )


def _refuse_disturbed(got: Any) -> None:
    """A script that draws its next sampler's seed gets the batches of another seed, if an earlier sampler drew too."""
    names = ("random", "np.random", "torch")
    for name, by_script, by_seed in zip(names, got["by_script"], got["by_seed"], strict=True):
        if by_script != by_seed:
            raise Wrong(
                "your sampler changes the random numbers that the rest of the program draws",
                why=f"the sampler seeded {name}'s global generator, or drew from it: dropout and augmentation, which "
                "share it, then draw the same numbers in every epoch, or different ones than without the sampler",
                next="draw from your own random.Random(...): random.seed() and random.shuffle() use the shared "
                "generator",
            )


def _refuse_waste(case: Any, batches: Any) -> None:
    import numpy as np

    lengths, size = case["lengths"], case["batch_size"]
    order = np.random.default_rng(0).permutation(len(lengths)).tolist()
    random = waste(lengths, [order[i : i + size] for i in range(0, len(order), size)])
    mine = waste(lengths, batches)
    if mine > WASTE_SHARE * random:
        why = (
            f"{percent(mine, digits=2)} of all positions are padding; in random batches, it "
            f"is {percent(random, digits=2)}, and "
        )
        then = (
            "sequences that share a batch should have nearly the same length: what must be sorted, and how much of it?"
        )
        if mine > 0.9 * random:
            then = (
                "your code sorts nothing by length, or sorts only within each batch, or shuffles "
                "the sorted indices again "
                "before it cuts them: sort pools of many batches, cut the pools into batches, and shuffle whole "
                "batches"
            )
        raise Wrong("your batches have too much padding", why=why + "at most half of that is allowed", next=then)


def _refuse_order(case: Any, batches: Any) -> None:
    alike = neighbours_alike(case["lengths"], batches)
    if not alike <= MOST_ALIKE:
        raise Wrong(
            "your batches are in the order of their lengths",
            why=f"the longest lengths of neighbouring batches have a rank correlation of {alike:.2f}; at most "
            f"{MOST_ALIKE} is allowed",
            next="use sorting only to decide which sequences share a batch, then shuffle the batches",
        )


def _refuse_mates(one: Any, other: Any) -> None:
    share = mates(one, other)
    if share > MOST_MATES:
        raise Wrong(
            "in your sampler, the same samples share a batch in every epoch",
            why=f"{percent(share, digits=2)} of all pairs share a batch again in the next epoch; at most "
            f"{percent(MOST_MATES, digits=2)} may",
            next="shuffle before you sort, and sort pools of several batches instead of everything",
        )
