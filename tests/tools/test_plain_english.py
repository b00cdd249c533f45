"""Text that people read contains fewer house words each time, and the tool that counts them can find them."""

from __future__ import annotations

from pathlib import Path

from tools.plain_english import (
    Sentence,
    allowed,
    counted,
    figures,
    files,
    house_words,
    record,
    sentences_of,
    split,
    uses,
)

COUNTS = """[words]
never = ["told", "by itself"]
by_sense = ["lies"]

[left]
"a.md" = 1
"gone.md" = 4

[reviewed]
"""


def too_many(found: dict[str, int], limits: dict[str, int], sentences: list[Sentence], which: int) -> list[str]:
    """The sentences of files that use more house words than they may."""
    more = {path for path, number in found.items() if number > limits[path]}
    named = uses([one for one in sentences if one.path in more], house_words()[which])
    return [f"{one.path}:{one.line}: [{word}] {one.text}" for one, word in named]


def test_no_file_uses_more_house_words_than_before() -> None:
    """A sentence that appears here is rewritten: CONTRIBUTING.md, "Plain English", says how."""
    sentences = [one for path in files() for one in sentences_of(path)]
    found, limits = counted(sentences), allowed()

    assert [] == too_many(found[0], limits[0], sentences, 0)
    assert [] == too_many(found[1], limits[1], sentences, 1), (
        "plain in this sense? python -m tools.plain_english --record"
    )


def test_a_house_word_is_found_in_each_kind_of_text(tmp_path: Path) -> None:
    texts = {
        "README.md": "A page that was told.\n\n```\nnobody reads code\n```\n",
        "edl_labs/one.py": '"""What is told."""\ndef f():\n    raise ValueError(f"nobody knows {f} here")\n',
        "solutions/lab01/lab01.py": "# %% [markdown]\n# Mend all of it now.\n\n# %%\nx = 'nobody reads this'\n",
        "solutions/lab01/lab.toml": '[[exercise]]\nhints = ["Whoever reads it knows."]\n',
        "solutions/lab01/mistakes/one.py": "# told: the host stands still here\nx = 1  # nobody\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    found = uses([one for path in files(tmp_path) for one in sentences_of(path, tmp_path)], house_words()[0])

    words = {one.path: word.lower() for one, word in found if one.kind != "docstrings"}
    assert {
        "README.md": "told",
        "edl_labs/one.py": "nobody",
        "solutions/lab01/lab.toml": "whoever",
        "solutions/lab01/lab01.py": "mend",
        "solutions/lab01/mistakes/one.py": "stands still",
    } == words
    assert [("docstrings", "told")] == [(one.kind, word) for one, word in found if one.kind == "docstrings"]


def test_names_and_code_are_no_house_words() -> None:
    named = Sentence("docs", "a.md", 1, "`told` and mend_accumulation and told.toml and one.told stay as they are")

    assert [] == uses([named], house_words()[0])


def test_sentences_end_at_full_stops_and_rows() -> None:
    assert ["One is e.g. `a.b`.", "Two!", "Three"] == split("One is e.g. `a.b`. Two!\n\nThree")
    assert ["first cell", "second cell"] == split("| first cell | second cell |")


def test_figures_are_medians_and_shares() -> None:
    short, long = (Sentence("docs", "a.md", 1, " ".join(["word"] * count)) for count in (4, 26))

    assert {"docs": (3, 4, 1 / 3, 0)} == figures([short, short, long])


def test_counts_only_fall(tmp_path: Path) -> None:
    counts = tmp_path / "counts.toml"
    counts.write_text(COUNTS)
    texts = [Sentence("docs", "a.md", 1, "told by itself"), Sentence("docs", "b.md", 1, "it lies here")]

    record(texts, counts)

    left, reviewed = allowed(counts)
    assert {"a.md": 1} == left
    assert {"b.md": 1} == reviewed
