"""Expressions over columns whose type is a choice have Oracle's results, or are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psycopg
import pytest

from olr_pg.datatypes.choices import Choices, ColumnChoice
from olr_pg.datatypes.mapping import PgKind, PgType
from olr_pg.dictionary.inventory import Constraint, Inventory, InventoryTable, InventoryView
from olr_pg.schema.conversion import convert
from olr_pg.schema.difference import differences
from olr_pg.schema.relation_columns import RelationColumn
from olr_pg.schema.relations import Relations
from olr_pg.schema.translating import UntranslatableError
from olr_pg.schema.translation import translate_expression, translate_query
from olr_pg.schema.trial import CREATED, LEFT_OUT, run_statements
from olr_pg.schema.value_kinds import Fact, ValueKind
from tests.schema.shop_relations import SETTINGS, column

CHOICES = Choices(
    flags=("NUMBER(1)",),
    date="date",
    raw_16="uuid",
    number="bigint",
    columns={
        "SHOP.P.ACTIVE": ColumnChoice("boolean", pairs=(("J", "N"),)),
        "SHOP.P.ANY_OF": ColumnChoice("boolean"),
        "SHOP.P.NAME": ColumnChoice(name="title"),
        "SHOP.P.ODD": ColumnChoice("jsonb"),
    },
)
CHOSEN = replace(SETTINGS, choices=CHOICES, table_names={"SHOP.P": "store.product"})
TABLE = InventoryTable(
    owner="SHOP",
    name="P",
    columns=(
        column("ID", "NUMBER", precision=9, scale=0, nullable=False),
        column("NAME", "VARCHAR2", length=20, char_length=20),
        column("ACTIVE", "CHAR", length=1, char_length=1, default="'J'"),
        column("OLD", "NUMBER", length=22, precision=1, scale=0, default="0"),
        column("ANY_OF", "CHAR", length=1, char_length=1, default="'T'"),
        column("DAY", "DATE", length=7),
        column("GUID", "RAW", length=16),
        column("N", "NUMBER", length=22),
        column("ODD", "CLOB", length=4000),
        column("SHOWN", "CHAR", length=1, char_length=1, virtual=True,
               default="CASE \"OLD\" WHEN 1 THEN 'N' ELSE 'J' END"),
    ),
)  # fmt: skip
VIEWS = (
    InventoryView(
        owner="SHOP", name="V", columns=(column("ACTIVE", "CHAR"), column("HALF", "NUMBER")),
        text="SELECT active, half FROM (SELECT active, n / 2 AS half FROM p WHERE old = 0)",
    ),
    InventoryView(
        owner="SHOP", name="ALL_OF", columns=(column("ID", "NUMBER"),), text="SELECT * FROM p"
    ),
)  # fmt: skip
CHECK = Constraint(
    owner="SHOP", name="P_CK", table="P", kind="check", condition="active IN ('J', 'N')"
)
INVENTORY = Inventory(owners=("SHOP",), tables=(TABLE,), views=VIEWS, constraints=(CHECK,))
RELATIONS = Relations(INVENTORY, CHOSEN)


def _one(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row


def test_a_schema_with_choices_is_made_and_has_oracles_results(postgres_database: str) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        statements = convert(INVENTORY, CHOSEN)
        outcomes = run_statements(connection, statements)
        left = [(one.statement.name, one.reason) for one in outcomes if one.state != CREATED]
        assert [name for name, _ in left] == ["SHOP.ALL_OF"]
        assert {one.state for one in outcomes} == {CREATED, LEFT_OUT}
        connection.execute(
            "INSERT INTO store.product (id, title, day, guid, n) VALUES"
            " (1, 'tea', '2026-03-07', '00112233-4455-6677-8899-aabbccddeeff', 7)"
        )
        row = _one(connection, "SELECT active, old, any_of FROM store.product")
        assert row == (True, False, True)
        assert _one(connection, "SELECT active, half FROM shop.v") == ("J", pytest.approx(3.5))
        for text, expected in (
            ("active || '!'", "J!"),
            ("DECODE(active, 'J', 1, 0) + old", "1"),
            ("day + 0.5", "2026-03-07 12:00:00"),
            ("TO_CHAR(day, 'YYYY-MM-DD HH24:MI')", "2026-03-07 00:00"),
            ("n / 2", "3.5000000000000000"),
            ("RAWTOHEX(guid)", "00112233445566778899AABBCCDDEEFF"),
            ("UPPER(name)", "TEA"),
        ):
            relation = RELATIONS.find("SHOP", "P")
            made, _ = translate_expression(text, RELATIONS, "SHOP", relation)
            assert _one(connection, f"SELECT ({made})::text FROM store.product") == (expected,), (
                text
            )
        found = differences(connection, INVENTORY, RELATIONS, statements)
        assert [one for one in found if one.what != "by hand"] == []
        connection.execute(
            "ALTER TABLE store.product ALTER any_of DROP DEFAULT, ALTER any_of TYPE text"
        )
        (told,) = [
            one
            for one in differences(connection, INVENTORY, RELATIONS, statements)
            if one.what == "type"
        ]
        assert told.detail == "text in the target; the source requires boolean"


def test_lobs_that_are_bytes_or_hexadecimal_are_read_as_oracle_has_them() -> None:
    text = RelationColumn("t", Fact(ValueKind.TEXT), PgType("bytea", PgKind.BYTEA))
    assert text.reading("t") == ("CONVERT_FROM(t, 'UTF8')", "")
    raw = RelationColumn("r", Fact(ValueKind.RAW), PgType("text", PgKind.TEXT))
    assert raw.reading("r") == ("DECODE(r, 'hex')", "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("any_of || ''", "a boolean can stand for several"),
        ("LENGTH(odd)", "you chose jsonb for its column odd"),
    ],
)
def test_what_cannot_be_told_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UntranslatableError, match=reason):
        translate_expression(text, RELATIONS, "SHOP", RELATIONS.find("SHOP", "P"))


def test_names_that_are_kept_are_kept_everywhere() -> None:
    kept = replace(SETTINGS, choices=Choices(keep_names=True))
    relations = Relations(INVENTORY, kept)
    text, _ = translate_query("SELECT x.id AS number_of FROM p x", relations, "SHOP")
    assert text == 'SELECT "X"."ID" AS "NUMBER_OF" FROM "SHOP"."P" AS "X"'
    (table,) = [one for one in convert(INVENTORY, kept) if one.kind == "table"]
    assert table.sql.startswith('CREATE TABLE "SHOP"."P" (\n    "ID" integer NOT NULL')


@pytest.mark.parametrize(
    ("data_type", "length", "scale"),
    [
        *(("NUMBER", 22, None), ("NUMBER", 22, 0), ("BINARY_FLOAT", 4, None)),
        *(("VARCHAR2", 10, None), ("CHAR", 10, None), ("DATE", 7, None), ("RAW", 16, None)),
        *(("TIMESTAMP(6)", 11, 6), ("TIMESTAMP(6) WITH TIME ZONE", 13, 6)),
        *(("INTERVAL DAY(2) TO SECOND(6)", 11, 6), ("INTERVAL YEAR(2) TO MONTH", 5, 0)),
    ],
)
def test_a_check_reads_a_column_of_every_type(
    data_type: str, length: int, scale: int | None
) -> None:
    own = InventoryTable(
        owner="SHOP",
        name="T",
        columns=(column("C", data_type, length=length, char_length=length, scale=scale),),
    )
    condition = '"C" IS NOT NULL OR "C" IS NULL'
    check = Constraint(owner="SHOP", name="CK", table="T", kind="check", condition=condition)
    made = convert(Inventory(owners=("SHOP",), tables=(own,), constraints=(check,)), SETTINGS)
    (found,) = [one for one in made if one.kind == "check"]
    assert found.reason == ""
    assert '(NOT "c" IS NULL OR "c" IS NULL)' in found.sql


@pytest.mark.parametrize(
    "text", ["name || 'x'", "CONCAT(name, 'x')", "NVL(name, 'y')", "LENGTH(name)", "GREATEST(n, 1)"]
)
def test_an_expression_of_a_table_stays_right_if_its_columns_become_nullable(text: str) -> None:
    """No statement of the source says that the target's generated column must be another one."""

    def translated(*, nullable: bool) -> str:
        columns = (
            column("NAME", "VARCHAR2", length=20, char_length=20, nullable=nullable),
            column("N", "NUMBER", length=22, nullable=nullable),
        )
        table = InventoryTable(owner="SHOP", name="Q", columns=columns)
        inventory = Inventory(owners=("SHOP",), tables=(table,))
        relations = Relations(inventory, SETTINGS)
        relation = relations.find("SHOP", "Q")
        assert relation is not None
        return translate_expression(text, relations, "SHOP", relation)[0]

    assert translated(nullable=True) == translated(nullable=False)
