"""Choices: which type and name a column gets, and what is told of what it does not hold."""

from __future__ import annotations

from typing import Any

import pytest

from olr_pg.datatypes.choices import DEFAULT_CHOICES, Choices, ColumnChoice
from olr_pg.datatypes.mapping import pg_type
from olr_pg.datatypes.policies import DEFAULT_POLICIES
from olr_pg.dictionary.model import Column
from olr_pg.errors import Code, OlrPgError


def column(code: int, length: int = 22, **facts: Any) -> Column:
    return Column("C", 1, 1, 1, code, length, **facts)


NUMBER_1 = column(2, precision=1, scale=0)
CHAR_1 = column(96, 4, char_length=1, charset_form=1)


@pytest.mark.parametrize(
    ("choices", "one", "name"),
    [
        (Choices(integers="integer"), column(2, precision=4, scale=0), "integer"),
        (Choices(integers="integer"), column(2, precision=12, scale=0), "bigint"),
        (Choices(integers="bigint"), column(2, precision=4, scale=0), "bigint"),
        (Choices(integers="bigint"), column(2, precision=19, scale=0), "numeric(19,0)"),
        (Choices(integers="numeric"), column(2, precision=4, scale=0), "numeric(4,0)"),
        (Choices(integers="numeric"), column(2, precision=4, scale=2), "numeric(4,2)"),
        (Choices(number="bigint"), column(2), "bigint"),
        (Choices(number="bigint"), column(2, scale=0), "bigint"),
        (Choices(number="bigint"), column(2, scale=2), "numeric(38,2)"),
        (Choices(number="bigint"), column(2, precision=126), "numeric"),  # FLOAT(126)
        (Choices(flags=("NUMBER(1)",)), NUMBER_1, "boolean"),
        (Choices(flags=("NUMBER(1)",)), column(2, precision=2, scale=0), "smallint"),
        (Choices(flags=("NUMBER(1)",)), CHAR_1, "char(1)"),
        (Choices(flags=("CHAR(1)",)), CHAR_1, "boolean"),
        (Choices(flags=("VARCHAR2(1)",)), column(1, 1, charset_form=1), "boolean"),
        (Choices(date="date"), column(12, 7), "date"),
        (Choices(raw_16="uuid"), column(23, 16), "uuid"),
        (Choices(raw_16="uuid"), column(23, 17), "bytea"),
        (Choices(clob="jsonb"), column(112, charset_form=1), "jsonb"),
        (Choices(clob="bytea"), column(112, charset_form=2), "bytea"),  # NCLOB
        (Choices(clob="json"), column(112, charset_form=1, xml=True), "xml"),
        (Choices(clob="json"), column(113), "bytea"),
        (Choices(blob="text"), column(113), "text"),
        (Choices(blob="jsonb"), column(113, xml=True), "xml"),
        (Choices(blob="jsonb"), column(112, charset_form=1), "text"),
        (Choices(clob="json", columns={"S.T.C": ColumnChoice("text")}), column(112), "text"),
        (Choices(columns={"S.T.*": ColumnChoice("text")}), column(2), "text"),
        (Choices(columns={"s.t.c": ColumnChoice("text")}), column(2), "text"),
        (Choices(columns={"S.U.*": ColumnChoice("text")}), column(2), "numeric"),
        (
            Choices(
                columns={"S.*.C": ColumnChoice(name="d"), "*": ColumnChoice("bigint")},
                flags=("NUMBER(1)",),
            ),
            NUMBER_1,
            "bigint",
        ),
    ],
)
def test_the_type_is_the_choice(choices: Choices, one: Column, name: str) -> None:
    assert choices.pg_type("S.T", one).name == name


@pytest.mark.parametrize("code", [1, 2, 8, 12, 23, 96, 100, 101, 112, 113, 119, 180, 181, 252])
def test_without_choices_all_is_the_mapping(code: int) -> None:
    one = column(code, 16, charset_form=1)
    assert DEFAULT_CHOICES.pg_type("S.T", one) == pg_type(one)


def test_what_a_choice_does_not_hold_is_told() -> None:
    flags = Choices(flags=("CHAR(1)",), columns={"S.J.*": ColumnChoice(pairs=(("J", "N"),))})
    assert flags.pg_type("S.T", CHAR_1).note.endswith("false: Y/N, T/F, 1/0")
    assert flags.pg_type("S.J", CHAR_1).note.endswith("false: J/N")
    assert "time of day" in Choices(date="date").pg_type("S.T", column(12, 7)).note
    small = Choices(columns={"*": ColumnChoice("smallint")})
    assert "from -32768 to 32767" in small.pg_type("S.T", column(2, precision=9, scale=0)).note
    assert small.pg_type("S.T", column(2, precision=2, scale=0)).note == ""
    assert "only JSON" in Choices(clob="json").pg_type("S.T", column(112)).note
    assert "hexadecimal" in Choices(blob="text").pg_type("S.T", column(113)).note
    assert "well-formed" in Choices(clob="xml").pg_type("S.T", column(112)).note


def test_a_flag_for_its_type_alone_is_known() -> None:
    flags = Choices(flags=("CHAR(1)",), columns={"S.J.*": ColumnChoice("boolean")})
    assert flags.is_flag_by_type("S.T", CHAR_1)
    assert not flags.is_flag_by_type("S.J", CHAR_1)
    assert not flags.is_flag_by_type("S.T", NUMBER_1)


def test_pairs_of_a_column_take_the_place_of_the_general_ones() -> None:
    choices = Choices(columns={"S.T.C": ColumnChoice(pairs=(("J", "N"),))})
    assert choices.policies("S.T", "C", DEFAULT_POLICIES).boolean_pairs == (("J", "N"),)
    assert choices.policies("S.T", "D", DEFAULT_POLICIES) is DEFAULT_POLICIES


def test_names_are_folded_kept_or_chosen() -> None:
    kept = Choices(keep_names=True, columns={"S.T.B": ColumnChoice(name="b")})
    assert kept.name("ORDERS") == "ORDERS"
    assert kept.column_names("S.T", ["A", "B"]) == {"A": "A", "B": "b"}
    assert DEFAULT_CHOICES.column_names("S.T", ["A", "Ab", "XMIN"]) == {
        "A": "a", "Ab": "Ab", "XMIN": "xmin_",
    }  # fmt: skip
    assert DEFAULT_CHOICES.column_names("S.T", ["A", "a"]) == {"A": "A", "a": "a"}


def test_two_columns_of_one_name_are_refused() -> None:
    choices = Choices(columns={"S.T.A": ColumnChoice(name="b")})
    assert choices.column_name("S.T", "A") == "b"
    with pytest.raises(OlrPgError) as caught:
        choices.column_names("S.T", ["A", "B"])
    assert caught.value.code == Code.TARGET_NAME_CLASH
    assert caught.value.where["table"] == "S.T"


def test_a_type_that_nobody_converts_to_is_refused() -> None:
    with pytest.raises(OlrPgError) as caught:
        Choices(columns={"*": ColumnChoice("money")}).pg_type("S.T", column(2))
    assert caught.value.code == Code.TYPE_NOT_CONVERTIBLE
