"""collate_pad, bucket_sampler and pack_sequences: other right answers pass, wrong ones are told apart."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from edl_labs.checks import judge
from edl_labs.checks.evidence import collect
from edl_labs.exercises.lab04_data_pipelines import bucket_sampler as batches
from edl_labs.exercises.lab04_data_pipelines.pack_sequences import most_looks
from edl_labs.virtual import ReplayError
from edl_labs.virtual.bin_tree import BinTree, replay_bins
from tests.sampling import few


def test_a_collate_with_pad_sequence_passes(judged):
    def with_pad_sequence(sequences, *, pad_id, multiple):
        width = -(-max(map(len, sequences)) // multiple) * multiple
        rows = [torch.tensor([*s, *[pad_id] * (width - len(s))], dtype=torch.long) for s in sequences]
        tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad_id)
        return tokens, torch.arange(width) < torch.tensor([len(s) for s in sequences])[:, None]

    assert "passed" == judged("collate_pad", collate_pad=with_pad_sequence).state


def test_a_mask_upside_down_and_other_dtypes_are_told(judged, solution):
    def inverted(sequences, **how):
        tokens, mask = solution["collate_pad"](sequences, **how)
        return tokens, ~mask

    def floats(sequences, **how):
        tokens, mask = solution["collate_pad"](sequences, **how)
        return tokens.float(), mask

    assert "your mask is inverted" == judged("collate_pad", collate_pad=inverted).what
    assert "your tokens must be int64, and your mask must be bool" == judged("collate_pad", collate_pad=floats).what


def test_waste_is_exact():
    assert 8 / 24 == batches.waste([3, 5, 8], [[0, 1, 2]])
    assert 0 == batches.waste([4, 4], [[0, 1]])


def test_mates_and_neighbours_know_their_extremes():
    lengths = list(range(1, 101))
    rows = [list(range(i, i + 4)) for i in range(0, 100, 4)]

    assert 1 == batches.mates(rows, rows)
    assert 0 == batches.mates(rows, [list(range(i, 100, 25)) for i in range(25)])
    assert 0.99 < batches.neighbours_alike(lengths, rows)


def sampler(make_batches):
    class Sampler:
        def __init__(self, lengths, *, batch_size, seed):
            self.lengths, self.size, self.seed, self.epoch = lengths, batch_size, seed, 0

        def set_epoch(self, epoch):
            self.epoch = epoch

        def __len__(self):
            return -(-len(self.lengths) // self.size)

        def __iter__(self):
            return iter(make_batches(self.lengths, self.size, random.Random(1000 * self.seed + self.epoch)))

    return Sampler


def by_noisy_length(lengths, size, rng):
    order = sorted(range(len(lengths)), key=lambda i: lengths[i] * rng.uniform(0.87, 1.15))
    made = [order[i : i + size] for i in range(0, len(order), size)]
    rng.shuffle(made)
    return made


@pytest.mark.parametrize("seed", few(range(4), quick=1))
def test_another_way_to_bucket_passes(judged, seed):
    assert "passed" == judged("bucket_sampler", seed=seed, BucketSampler=sampler(by_noisy_length)).state


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_the_reference_sampler_stays_clear_of_its_bounds(judged, seed):
    assert "passed" == judged("bucket_sampler", seed=seed).state


def test_a_sampler_of_small_batches_is_refused(judged):
    def singles(lengths, size, rng):
        return [[i] for i in rng.sample(range(len(lengths)), len(lengths))]

    outcome = judged("bucket_sampler", BucketSampler=sampler(singles))

    assert "more than one of your batches is not full" == outcome.what
    assert outcome.why.startswith(
        "iterating gave 1201 batches, 1201 of them with fewer than 12 samples; 1201 samples make 101 "
    )


def test_a_batch_that_is_larger_than_asked_is_told(judged):
    def larger(lengths, size, rng):
        return by_noisy_length(lengths, size + 1, rng)

    assert (
        "one of your batches has more "
        "samples than batch_size" == judged("bucket_sampler", BucketSampler=sampler(larger)).what
    )


def iterating(given):
    class Sampler(sampler(by_noisy_length)):
        def __iter__(self):
            return given(list(super().__iter__()))

    return Sampler


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (list, "`__iter__` returned a list instead of an iterator"),
        (lambda batches: None, "`__iter__` returned None instead of an iterator"),
        (lambda batches: (i for batch in batches for i in batch), "your sampler gave something other than batches"),
        (lambda batches: iter(torch.arange(3)), "your sampler gave something other than batches"),
        (lambda batches: iter(7), "your code raised TypeError: 'int' object is not iterable"),
        (
            lambda batches: iter(iterating(list)([1], batch_size=1, seed=1)),
            "your code raised TypeError: iter() returned",
        ),
    ],
)
def test_what_iterating_gives_is_named_where_the_sampler_itself_gives_it(exercises, given, told):
    case = {"lengths": list(range(1, 9)), "batch_size": 3, "seed": 1}
    found = collect(exercises["bucket_sampler"], {"BucketSampler": iterating(given)}, [case])

    assert judge(exercises["bucket_sampler"], [case], found, [{}], points=1).what.startswith(told)


def test_two_batches_that_share_the_rest_are_refused(judged):
    def two_are_short(lengths, size, rng):
        made = by_noisy_length(lengths, size, rng)
        (place,) = [i for i, batch in enumerate(made) if len(batch) < size] or [0]
        other = made[(place + 1) % len(made)]
        if len(made[place]) < size - 1:
            made[place].append(other.pop())
        return made

    told = {judged("bucket_sampler", seed=s, BucketSampler=sampler(two_are_short)).what for s in range(4)}

    assert {"more than one of your batches is not full"} == told


def test_a_sampler_that_begins_with_another_epoch_is_refused(judged):
    class BeginsWithOne(sampler(by_noisy_length)):
        def __init__(self, lengths, *, batch_size, seed):
            super().__init__(lengths, batch_size=batch_size, seed=seed)
            self.epoch = 1

    assert (
        "before any call to set_epoch(), your sampler's epoch is not 0"
        == judged("bucket_sampler", BucketSampler=BeginsWithOne).what
    )


def test_an_order_that_depends_on_what_was_iterated_before_is_refused(judged):
    class Remembers:
        def __init__(self, lengths, *, batch_size, seed):
            self.lengths, self.size, self.rng = lengths, batch_size, random.Random(seed)

        def set_epoch(self, epoch):
            pass

        def __len__(self):
            return -(-len(self.lengths) // self.size)

        def __iter__(self):
            return iter(by_noisy_length(self.lengths, self.size, self.rng))

    told = "your sampler gave different orders for the same seed and epoch"

    assert told == judged("bucket_sampler", BucketSampler=Remembers).what


@pytest.mark.slow
def test_a_search_with_fresh_looks_at_the_root_passes(judged):
    def careful(lengths, tree):
        for index, length in enumerate(lengths):
            if length > tree.capacity:
                raise ValueError(f"no. {index} is too long")
        rows = {}
        for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], -i)):
            node = 1
            assert tree.room(1) >= lengths[index]
            while node < tree.leaves:
                node = 2 * node if tree.room(2 * node) >= lengths[index] else 2 * node + 1
                tree.room(node)
            tree.put(node - tree.leaves, lengths[index])
            rows.setdefault(node, []).append(index)
        return list(rows.values())

    assert "passed" == judged("pack_sequences", pack_sequences=careful).state


def packing(choose):
    """Longest first, each into the row that `choose` takes, of rooms of all rows, a length and the row before."""

    def packed(lengths, tree):
        if max(lengths) > tree.capacity:
            raise ValueError(f"sequence {lengths.index(max(lengths))} is too long")
        rows, rooms, row = {}, [tree.capacity] * tree.leaves, 0
        for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
            row = choose([(room, i) for i, room in enumerate(rooms) if room >= lengths[index]], row, tree)
            tree.put(row, lengths[index])
            rooms[row] -= lengths[index]
            rows.setdefault(row, []).append(index)
        return [rows[row] for row in sorted(rows)]

    return packed


def next_fit(fits, row, tree):
    return row if row in [i for _, i in fits] else row + 1


def seventh(fits, row, tree):
    """The last row for one sequence, else first fit."""
    return fits[-1 if 6 * [tree.capacity] == [room for room, _ in fits[-6:]] and row == 0 else 0][1]


def look_and_put_the_leaf(fits, row, tree):
    tree.room(tree.leaves + fits[0][1])
    return tree.leaves + fits[0][1]


@pytest.mark.parametrize(
    ("choose", "told"),
    [
        (next_fit, "your code filled only the current row, and did not look at earlier rows again"),
        (lambda fits, row, tree: fits[-1][1], "your code chose the last row with room, not the first"),
        (lambda fits, row, tree: min(fits)[1], "your code chose the fullest row with room, not the first"),
        (
            lambda fits, row, tree: max((room % tree.capacity, -i) for room, i in fits)[1] * -1,
            "your code chose the emptiest row, not the first with room",
        ),
        (look_and_put_the_leaf, "your code gave tree.put() the number of a leaf, not of a row"),
        # Near them: the last row for one sequence alone, the second row with room, a row behind the last.
        (seventh, "your code put a sequence into a later row than necessary"),
        (
            lambda fits, row, tree: fits[min(1, len(fits) - 1)][1],
            "your code put a sequence into a later row than necessary",
        ),
        (lambda fits, row, tree: tree.leaves, "your code raised UsageError: cannot put a length of"),
    ],
)
def test_a_packing_by_another_rule_is_named_where_all_of_it_follows(judged, choose, told):
    assert judged("pack_sequences", pack_sequences=packing(choose)).what.startswith(told)


def test_rows_that_are_not_those_of_the_tree_are_refused(judged, solution):
    def other_rows(lengths, tree):
        rows = solution["pack_sequences"](lengths, tree)
        return [*rows[:-2], [*rows[-2], *rows[-1]]]

    assert (
        "the rows that you returned differ "
        "from those in the tree" == judged("pack_sequences", pack_sequences=other_rows).what
    )


def test_a_forged_record_is_refused(judged, solution):
    def forged(lengths, tree):
        rows = solution["pack_sequences"](lengths, tree)
        tree._recorded.insert(0, [0, 10**9])
        return rows

    assert "the tree's record cannot be replayed" == judged("pack_sequences", pack_sequences=forged).what


def test_a_wrong_mask_costs_half_and_a_wrong_packing_all(judged, solution):
    def causal(lengths, capacity):
        mask = solution["packed_mask"](lengths, capacity)
        return torch.ones_like(mask).tril()

    def another_shape(lengths, capacity):
        return solution["packed_mask"](lengths, capacity)[:-1]

    def one_row_each(lengths, tree):
        if max(lengths) > tree.capacity:
            raise ValueError(f"no. {lengths.index(max(lengths))} is too long")
        for index, length in enumerate(lengths):
            tree.put(index, length)
        return [[index] for index in range(len(lengths))]

    for mask, told in (
        (causal, "in your mask, a token looks into another sequence"),
        (another_shape, "your mask has the wrong shape or dtype"),
    ):
        outcome = judged("pack_sequences", packed_mask=mask)
        assert (0.5, "partly", told) == (outcome.points, outcome.state, outcome.what)
        assert 0 == judged("pack_sequences", packed_mask=mask, pack_sequences=one_row_each).points
    assert 0 == judged("pack_sequences", pack_sequences=one_row_each).points


def test_looks_of_the_reference_are_a_third_of_what_is_allowed(solution):
    lengths = [random.Random(3).randint(50, 300) for _ in range(400)]
    tree = BinTree(400, bins=400)
    solution["pack_sequences"](lengths, tree)
    looks = replay_bins(tree.program, 400, bins=400).looks

    assert 400 * 9 == looks
    assert 3 * looks == most_looks(400)


@pytest.mark.parametrize(
    "program",
    [None, {}, [[]], [[1, 2, 3]], [["x"]], [[0]], [[99]], [[0, 1000]], [[-1, 5]], [[True, 5, 1]], [[0, 1.5]], [3]],
)
def test_what_is_no_program_of_a_tree_is_refused(program):
    with pytest.raises(ReplayError):
        replay_bins(program, 100, bins=4)


FORMS = {
    "arrays": np.array,
    "tuples": tuple,
    "generators": lambda numbers: (number for number in numbers),
    "tensors": torch.tensor,
    "whole floats": lambda numbers: [float(number) for number in numbers],
    "arrays without dimensions": lambda numbers: [np.array(number) for number in numbers],
    "long doubles": lambda numbers: np.array(numbers, dtype=np.longdouble),
}


@pytest.mark.parametrize("form", few(FORMS, quick=3))
def test_rows_and_batches_may_have_any_form(judged, solution, form):
    class Sampler(solution["BucketSampler"]):
        def __iter__(self):
            return (FORMS[form](batch) for batch in super().__iter__())

    def packed(lengths, tree):
        return [FORMS[form](row) for row in solution["pack_sequences"](lengths, tree)]

    assert "passed" == judged("bucket_sampler", BucketSampler=Sampler).state
    assert "passed" == judged("pack_sequences", pack_sequences=packed).state


def test_rows_of_texts_and_halves_are_not_made_whole(judged, solution):
    for change in (str, lambda index: index + 0.5):

        def packed(lengths, tree, change=change):
            return [[change(index) for index in row] for row in solution["pack_sequences"](lengths, tree)]

        assert 0 == judged("pack_sequences", pack_sequences=packed).points
