"""What lab03's bytes_per_parameter says of a master copy that is counted wrongly, and of answers near it."""

from __future__ import annotations

import pytest

from edl_labs.exercises.lab03_mixed_precision.recipe_bytes import BytesPerParameter

ROWS = {"fp32": (4, 0, 4, 4), "autocast": (4, 0, 4, 4), "bf16": (2, 0, 2, 2)}
ROWS |= {"deck 000": (2, 4, 2, 4), "deck 002": (2, 4, 4, 4)}


def resident(case, *, wrong=""):
    """Bytes on each GPU; `wrong` names a part that is counted as if the recipe did not say what it says of it."""
    weights, master, gradients, state = ROWS[case["precision"]]
    states = {"sgd": 0, "momentum": state, "adam": 2 * state, "adam 8 bit": 2}[case["optimizer"]]

    def kept(each, stage, name):
        share = 1 if wrong == f"frozen {name}" else case["trained"]
        return each * share / (case["gpus"] if case["zero_stage"] >= stage and wrong != f"whole {name}" else 1)

    on_gpu = 0 if case["offload"] else kept(master, 1, "master") + kept(states, 1, "states")
    return on_gpu + kept(gradients, 2, "gradients") + weights / (case["gpus"] if case["zero_stage"] == 3 else 1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ("whole master", "your code does not split the master copy"),
        ("frozen master", "your code counts a master copy of weights that are not trained"),
        ("whole states", None),
        ("frozen gradients", None),
    ],
)
def test_a_master_copy_is_known_by_all_recipes(exercises, seed, wrong, what):
    cases = exercises["bytes_per_parameter"].draw_cases(seed)
    right = [resident(case) for case in cases]
    came = [resident(case, wrong=wrong) for case in cases]

    told = BytesPerParameter().diagnose_all_cases(cases, [(one, one) for one in came], [(one, one) for one in right])

    assert (what if came != right else None) == (told and told.what)


def test_one_recipe_that_is_right_and_nothing_is_named(exercises):
    cases = exercises["bytes_per_parameter"].draw_cases(1)
    right = [resident(case) for case in cases]
    came = [resident(case, wrong="whole master") for case in cases]
    first = next(i for i in range(len(cases)) if came[i] != right[i])
    came[first] = right[first]

    told = BytesPerParameter().diagnose_all_cases(cases, [(one, one) for one in came], [(one, one) for one in right])

    assert told is None
