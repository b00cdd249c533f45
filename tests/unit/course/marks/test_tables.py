"""Tables of learning systems: any delimiter, encoding and quoting, in and out unchanged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edl_labs.course.marks.tables import inert, parse_table, same_name
from edl_labs.errors import UsageError

TEXT = 'Student,ID\r\n"Álvarez, José",7\r\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_every_encoding_is_read_and_written_back(encoding: str) -> None:
    data = TEXT.encode(encoding)
    table = parse_table(data, "grades.csv")

    assert (("Álvarez, José", "7"),) == table.rows
    assert data.decode(encoding).split() == table.written(table.rows).decode(encoding).replace('"', '"').split()


def test_what_windows_saved_has_its_letters_and_any_other_byte_comes_back() -> None:
    names, odd = "id,name\r\n1,Šárka O’Neil\r\n".encode("cp1252"), b"id,name\r\n1,\x81\r\n"

    assert "Šárka O’Neil" == parse_table(names, "x.csv").rows[0][1]
    for data in (names, odd):
        table = parse_table(data, "x.csv")
        assert data == table.written(table.rows)


def test_what_a_student_typed_online_may_be_long() -> None:
    assert 200_000 == len(parse_table(f"id,text\n1,{'x' * 200_000}\n".encode(), "x.csv").rows[0][1])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_every_delimiter_is_found_and_kept(delimiter: str) -> None:
    table = parse_table(f"id{delimiter}name\n1{delimiter}Ana\n".encode(), "x.csv")

    assert [("1", "Ana")] == list(table.rows)
    assert delimiter.encode() in table.written(table.rows)


def test_short_rows_are_filled_and_columns_are_found_by_their_words() -> None:
    table = parse_table(b"Student_ID, Full  Name\n1\n", "x.csv")

    assert 0 == table.column("student id")
    assert "" == table.cell(table.rows[0], table.need("full name"))


@pytest.mark.parametrize("data", [b"", b"\n\n", b"a\0b", b'"a\n1,2'])
def test_what_is_no_table_is_said(data: bytes) -> None:
    with pytest.raises(UsageError, match="not a table"):
        parse_table(data, "x.csv")


def test_a_column_that_is_missing_names_those_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        parse_table(b"a,b\n1,2\n", "x.csv").need("Grade")

    assert "a, b" in caught.value.why


@pytest.mark.parametrize("text", ["=1+1", "+1+cmd", "-2+3", "@SUM(A1)", "\t=1", " =1", '=HYPERLINK("x")'])
def test_formulas_become_text(text: str) -> None:
    assert inert(text).startswith("'")


@given(st.text(max_size=30))
def test_no_cell_that_was_made_inert_computes(text: str) -> None:
    made = inert(text)
    number = made.replace(".", "").lstrip("+-").replace("e", "").replace("_", "")

    assert not made.lstrip(" ").startswith(("=", "@", "\t", "\r")) or number.isdigit()


def test_numbers_stay_numbers() -> None:
    assert ["-3.5", "+2", "7"] == [inert(text) for text in ("-3.5", "+2", "7")]


def test_names_compare_without_accents_order_and_commas() -> None:
    assert same_name("Álvarez, José") == same_name("jose ALVAREZ")
    assert same_name("Ann Lee") != same_name("Anne Lee")


def test_the_sign_for_no_mark_stays_as_it_is() -> None:
    assert ["-", " - ", "'-x"] == [inert(text) for text in ("-", " - ", "-x")]
