"""Who works with whom: read from a table that course.toml names, by lab where it says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl_labs.course.groups import Groups, read_groups
from edl_labs.errors import UsageError


def groups(root: Path, text: str, assignment: str = "lab01_mine") -> Groups:
    (root / "course.toml").write_text('[course]\ngroups = "groups.csv"\n')
    (root / "groups.csv").write_text(text, encoding="utf-8-sig")
    return read_groups(root, assignment)


def test_a_group_has_its_members_and_one_name_for_its_draw(tmp_path: Path):
    found = groups(tmp_path, "group,id\nred,ann\nred,bob\nblue,cleo\n")

    assert (("ann", "bob"), ("cleo",), ("dora",)) == tuple(found.mates(s) for s in ("bob", "cleo", "dora"))
    assert found.named("ann") == found.named("bob") != found.named("cleo")
    assert "dora" == found.named("dora")
    assert [True, False, False] == [found.together("ann", other) for other in ("bob", "cleo", "dora")]


def test_a_labs_own_groups_come_before_the_others(tmp_path: Path):
    text = "group,id,assignment\nred,ann,\nred,bob,\nnew,ann,lab02_mine\nnew,cleo,lab02_mine\n"

    assert ("ann", "bob") == groups(tmp_path, text).mates("ann")
    assert ("ann", "cleo") == groups(tmp_path, text, "lab02_mine").mates("ann")
    assert ("bob",) == groups(tmp_path, text, "lab02_mine").mates("bob")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("group,id\nred,ann\nblue,ann\n", "line 3: the student is in two groups"),
        ("group,id\nred,\n", "line 2: the group or the id is missing"),
        ("team,who\nred,ann\n", "line 2: the group or the id is missing"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_line(tmp_path: Path, text: str, said: str):
    with pytest.raises(UsageError, match=said):
        groups(tmp_path, text)


def test_without_a_file_everybody_works_alone(tmp_path: Path):
    assert ("ann",) == read_groups(tmp_path, "lab01_mine").mates("ann")
