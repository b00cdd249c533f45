"""The reference: worked out once, beside the first submissions, from the solution's definitions."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl_labs.course.grade.reference import _packed, _unpacked
from edl_labs.course.grade.secret_cases import ClassSecrets, SecretCases
from edl_labs.errors import EdlError


def test_whoever_looks_a_secret_up_waits_for_it():
    go, seen = threading.Event(), []

    def compute() -> dict[str, SecretCases]:
        go.wait(10)
        return {"area": SecretCases(b"cases", b"wants")}

    secrets = ClassSecrets(compute)
    reader = threading.Thread(target=lambda: seen.append(secrets["area"].wants))
    reader.start()

    assert ([], True) == (seen, reader.is_alive())
    go.set()
    reader.join(10)
    assert [b"wants"] == seen
    assert (["area"], 1) == (list(secrets), len(secrets))


def test_what_went_wrong_is_told_to_all_who_wait():
    def compute() -> dict[str, SecretCases]:
        raise EdlError("the solution gives no evidence")

    secrets = ClassSecrets(compute)
    for _ in range(2):
        with pytest.raises(EdlError, match="no evidence"):
            secrets["area"]
    assert secrets.failed


@given(st.dictionaries(st.text(max_size=8), st.tuples(st.binary(max_size=50), st.binary(max_size=50)), max_size=4))
def test_what_is_kept_of_a_draw_comes_back_to_the_byte(kept):
    secrets = {name: SecretCases(*parts) for name, parts in kept.items()}

    assert secrets == _unpacked(_packed(secrets))
