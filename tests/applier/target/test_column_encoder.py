"""The encoder of a column: with its pairs, and without what PostgreSQL would round or cut."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.target.catalogue import TargetColumn
from olr_pg.applier.target.column_encoder import column_encoder
from olr_pg.datatypes.choices import Choices, ColumnChoice
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.mapping import PgKind
from olr_pg.datatypes.number import encode_number
from olr_pg.dictionary.model import Column
from olr_pg.errors import Code, OlrPgError

NUMBER = Column("C", 1, 1, 1, 2, 22)
TEXT = Column("C", 1, 1, 1, 1, 40, charset_id=873, charset_form=1)


def settings(chosen: ColumnChoice | None = None) -> ApplierSettings:
    columns = {} if chosen is None else {"S.T.C": chosen}
    return ApplierSettings("", "", 0, "", choices=Choices(columns=columns))


def target(kind: PgKind, modifier: int = -1) -> TargetColumn:
    return TargetColumn("c", int(kind), int(kind), kind.name.lower(), False, "", modifier)


NUMERIC_12_2 = target(PgKind.NUMERIC, (12 << 16 | 2) + 4)
VARCHAR_3 = target(PgKind.VARCHAR, 3 + 4)


def encoded(chosen: ColumnChoice, one: Column, to: TargetColumn, *values: bytes | None) -> Any:
    return column_encoder(settings(chosen), "S.T", one, to)(column_of(values))[0].values()


def test_what_was_chosen_rounds_nothing() -> None:
    chosen = ColumnChoice("numeric(12,2)")
    fits = [None, b"\x80", *(encode_number(Decimal(text)) for text in ("1.25", "-7", "1E+9"))]
    assert len(encoded(chosen, NUMBER, NUMERIC_12_2, *fits)) == len(fits)
    with pytest.raises(OlrPgError) as caught:
        encoded(chosen, NUMBER, NUMERIC_12_2, *fits, encode_number(Decimal("0.125")))
    assert caught.value.code == Code.VALUE_WOULD_LOSE
    assert (caught.value.where["row"], caught.value.where["column"]) == (len(fits), "C")
    assert "apply.columns" in caught.value.action


def test_what_was_chosen_cuts_no_blanks() -> None:
    chosen = ColumnChoice("varchar(3)")
    assert encoded(chosen, TEXT, VARCHAR_3, "żół".encode(), None, b"a  ") == [
        "żół".encode(), None, b"a  ",
    ]  # fmt: skip
    with pytest.raises(OlrPgError) as caught:
        encoded(chosen, TEXT, VARCHAR_3, b"abc ")
    assert caught.value.code == Code.VALUE_OUT_OF_RANGE


def test_a_target_that_nobody_chose_keeps_its_ways() -> None:
    encoder = column_encoder(settings(), "S.T", NUMBER, NUMERIC_12_2)
    assert encoder.plain
    assert encoder(column_of([encode_number(Decimal("0.125"))]))
    assert not column_encoder(settings(ColumnChoice("numeric")), "S.T", NUMBER, NUMERIC_12_2).plain


def test_a_scale_before_the_point_is_refused() -> None:
    hundreds = target(PgKind.NUMERIC, (5 << 16 | (-2 & 0x7FF)) + 4)
    with pytest.raises(OlrPgError) as caught:
        column_encoder(settings(ColumnChoice("numeric(5,-2)")), "S.T", NUMBER, hundreds)
    assert caught.value.code == Code.VALUE_WOULD_LOSE


def test_a_flag_has_the_pairs_of_its_column() -> None:
    chosen = ColumnChoice("boolean", pairs=(("J", "N"),))
    assert encoded(chosen, TEXT, target(PgKind.BOOL), b"J", None, b"N") == [b"\1", None, b"\0"]
    with pytest.raises(OlrPgError, match="J/N"):
        encoded(chosen, TEXT, target(PgKind.BOOL), b"Y")


def test_types_that_do_not_fit_are_told_by_their_names() -> None:
    money = TargetColumn("c", 790, 790, "money", False, "")
    for column, name in (TEXT, "VARCHAR2(40)"), (replace(TEXT, length=0), "VARCHAR2"):
        with pytest.raises(OlrPgError) as caught:
            column_encoder(settings(), "S.T", column, money)
        assert caught.value.code == Code.TYPE_NOT_CONVERTIBLE
        assert caught.value.detail == f"{name} to money"
