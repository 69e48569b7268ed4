"""The shop's schema made in a real PostgreSQL: everything is there, or named with the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.applier.statements.target_plan import new_table
from olr_pg.dictionary.inventory import (
    Constraint,
    IndexPart,
    Inventory,
    InventoryColumn,
    InventoryIndex,
    InventoryTable,
    InventoryView,
    Partition,
    Partitioning,
)
from olr_pg.schema.conversion import convert
from olr_pg.schema.difference import differences
from olr_pg.schema.relations import Relations
from olr_pg.schema.statement import BEFORE_DATA, file_texts, write_files
from olr_pg.schema.table_definitions import made_columns
from olr_pg.schema.trial import CREATED, FAILED, LEFT_OUT, PRESENT, run_statements, tried
from tests.schema.shop_relations import SETTINGS, column

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot


@pytest.fixture
def target(postgres_database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        yield connection


def _one(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def test_the_shop_is_made_once_and_then_there(
    shop: Inventory, target: psycopg.Connection[Any], tmp_path: Path
) -> None:
    target.execute("CREATE ROLE reporting")
    try:
        statements = tried(target, convert(shop, SETTINGS))
        assert _one(target, "SELECT to_regnamespace('shop') IS NULL")  # only tried
        outcomes = run_statements(target, statements)
        assert not [one for one in outcomes if one.state == FAILED]
        left = {one.statement.name for one in outcomes if one.state == LEFT_OUT}
        assert left >= {"SHOP.ORDER_API", "SHOP.BASKET", "SHOP.CLIENTS"}
        again = run_statements(target, convert(shop, SETTINGS))
        assert {one.state for one in again} == {PRESENT, LEFT_OUT}
        assert not [
            one
            for one in differences(target, shop, Relations(shop, SETTINGS), statements)
            if one.what != "by hand"
        ]
        _look_at(target)
        written = write_files(statements, tmp_path)
        text = "".join(path.read_text() for path in written)
        assert all(one.name in text for one in statements)
    finally:
        target.execute("DROP OWNED BY reporting")
        target.execute("DROP ROLE reporting")


def _look_at(target: psycopg.Connection[Any]) -> None:
    target.execute(
        "INSERT INTO shop.products (name, price) VALUES ('tea', 10); "
        "INSERT INTO shop.audit_log (audit_id, at) VALUES (1, '2026-01-15'), (2, '2027-01-01')"
    )
    row = target.execute("SELECT product_id, gross, active FROM shop.products").fetchone()
    assert row is not None
    assert (row[0], str(row[1]), row[2]) == (501, "11.90", "Y")
    assert _one(target, "SELECT count(*) FROM shop.audit_log_default") == 1
    assert _one(target, "SELECT obj_description('shop.orders'::regclass)").startswith("One line")
    with pytest.raises(psycopg.errors.CheckViolation):
        target.execute("UPDATE shop.products SET active = 'X'")
    assert _one(target, "SELECT has_table_privilege('reporting', 'shop.orders', 'SELECT')")
    assert _one(target, "SELECT count(*) FROM shop.customer_balances") == 0


def test_columns_are_those_that_a_load_makes(shop: Inventory, shop_snapshot: Snapshot) -> None:
    relations = Relations(shop, SETTINGS)
    by_name = {(one.owner, one.name): one for one in shop.tables}
    for table in shop_snapshot.tables:
        known = by_name[table.owner, table.name]
        relation = relations.find(table.owner, table.name)
        assert relation is not None
        expected, _ = new_table(SETTINGS, table, table)
        made = [(one.name, one.type_name) for one in made_columns(known, relation)]
        assert made == [(one.name, one.type_name) for one in expected]


def test_a_difference_is_told(shop: Inventory, target: psycopg.Connection[Any]) -> None:
    statements = convert(shop, SETTINGS)
    run_statements(target, [one for one in statements if one.kind in BEFORE_DATA])
    target.execute(
        "ALTER TABLE shop.stock ALTER quantity TYPE bigint, ALTER name DROP NOT NULL,"
        " ADD extra int; ALTER TABLE shop.payments DROP note"
    )
    found = differences(target, shop, Relations(shop, SETTINGS), statements)
    told = {(one.name, one.what) for one in found if one.what != "by hand"}
    assert told >= {
        ("SHOP.STOCK.QUANTITY", "type"),
        ("SHOP.STOCK.NAME", "NOT NULL"),
        ("SHOP.STOCK: extra", "extra column"),
        ("SHOP.PAYMENTS.NOTE", "missing"),
        ("SHOP.CUSTOMER_BALANCES", "missing"),
    }


def test_another_definition_under_the_same_name_is_told(target: psycopg.Connection[Any]) -> None:
    columns = [
        InventoryColumn(name=name, data_type="NUMBER", precision=5, scale=0, comment=f"of {name}")
        for name in ("A", "B")
    ]
    virtual = InventoryColumn(
        name="V", data_type="NUMBER", precision=9, scale=0, virtual=True, default='"A"+1'
    )
    filled = replace(columns[0], default="7", nullable=False)
    table = _table(filled, columns[1], virtual, comment="it's P")
    check = Constraint(
        owner="SHOP", table="P", name="CK", kind="check", columns=("B",), condition='"B" > 0'
    )
    key = Constraint(
        owner="SHOP", table="P", name="PK", kind="primary key", columns=("A",), condition=""
    )
    own = Constraint(
        owner="SHOP", table="P", name="FK", kind="foreign key", columns=("B",),
        parent_owner="SHOP", parent_table="P", parent_columns=("A",), delete_rule="CASCADE",
    )  # fmt: skip
    index = InventoryIndex(
        owner="SHOP", name="IX", table_owner="SHOP", table="P", kind="FUNCTION-BASED NORMAL",
        parts=(IndexPart(text='"B"*2', expression=True),),
    )  # fmt: skip
    source = Inventory(tables=(table,), constraints=(check, key, own), indexes=(index,))
    statements = convert(source, SETTINGS)
    assert not [one for one in run_statements(target, statements) if one.state == FAILED]

    def told() -> set[tuple[str, str, str]]:
        found = differences(target, source, Relations(source, SETTINGS), statements)
        return {(one.kind, one.name.partition(": ")[2], one.what) for one in found}

    target.execute("ALTER INDEX shop.ix SET (fillfactor = 70)")
    assert told() == set()
    target.execute(
        "ALTER TABLE shop.p DROP CONSTRAINT ck, ADD CONSTRAINT ck CHECK (b > 1) NOT VALID,"
        " ALTER a SET DEFAULT 8, DROP v, ADD v int GENERATED ALWAYS AS (a + 2) STORED;"
        "DROP INDEX shop.ix; CREATE INDEX ix ON shop.p ((b * 3));"
        "COMMENT ON TABLE shop.p IS 'P'; COMMENT ON COLUMN shop.p.b IS 'of A'"
    )
    names = {"check": "ck", "index": "ix", "default": "a", "generated column": "v"}
    assert told() == {
        *((kind, name, "definition") for kind, name in names.items()),
        ("comment", "", "definition"),
        ("comment", "b", "definition"),
    }
    target.execute(
        "ALTER TABLE shop.p DROP CONSTRAINT fk,"
        " ADD CONSTRAINT fk FOREIGN KEY (b) REFERENCES shop.p (a) ON DELETE SET NULL"
    )
    assert ("foreign key", "", "definition") in told()
    target.execute("ALTER TABLE shop.p ALTER v DROP EXPRESSION")
    assert ("generated column", "v", "definition") in told()
    target.execute("SET default_transaction_read_only = on")  # as on a standby
    with capture_logs() as logs:
        assert told() == {("foreign key", "", "definition")}
    assert [one["log_level"] for one in logs] == ["warning"]


def _table(*columns: Any, **others: Any) -> InventoryTable:
    return InventoryTable(owner="SHOP", name="P", columns=columns, **others)


NUMBER = column("ID", "NUMBER", precision=9, scale=0, nullable=False)
DAY = column("DAY", "DATE", nullable=False)


def _key(*columns: str) -> Constraint:
    return Constraint(
        owner="SHOP", name="P_PK", table="P", kind="primary key", columns=columns, index="P_PK"
    )


@pytest.mark.parametrize(
    ("partitioning", "rows"),
    [
        (
            Partitioning(
                method="HASH",
                columns=("ID",),
                partitions=(Partition(name="A"), Partition(name="B")),
            ),
            {"p_a", "p_b"},
        ),
        (
            Partitioning(
                method="RANGE",
                columns=("ID",),
                submethod="LIST",
                subcolumns=("DAY",),
                partitions=(
                    Partition(
                        name="LOW",
                        high_value="100",
                        subpartitions=(Partition(name="LOW_REST", high_value="DEFAULT"),),
                    ),
                    Partition(
                        name="HIGH",
                        high_value="MAXVALUE",
                        subpartitions=(Partition(name="HIGH_REST", high_value="DEFAULT"),),
                    ),
                ),
            ),
            {"p_low_low_rest", "p_high_high_rest"},
        ),
    ],
)
def test_partitions(
    partitioning: Partitioning, rows: set[str], target: psycopg.Connection[Any]
) -> None:
    table = _table(NUMBER, DAY, partitioning=partitioning)
    found = Inventory(owners=("SHOP",), tables=(table,), constraints=(_key("ID", "DAY"),))
    outcomes = run_statements(target, convert(found, SETTINGS))
    assert {one.state for one in outcomes} == {CREATED}
    target.execute("INSERT INTO shop.p SELECT n, '2026-01-01' FROM generate_series(1, 200) n")
    leaves = target.execute("SELECT DISTINCT tableoid::regclass::text FROM shop.p").fetchall()
    assert {name.removeprefix("shop.") for (name,) in leaves} == rows


def test_a_key_without_the_partition_key_keeps_the_table_whole() -> None:
    parted = Partitioning(method="RANGE", columns=("DAY",), partitions=())
    table = _table(NUMBER, DAY, partitioning=parted)
    found = Inventory(owners=("SHOP",), tables=(table,), constraints=(_key("ID"),))
    statements = convert(found, SETTINGS)
    (made,) = [one for one in statements if one.kind == "table"]
    assert "PARTITION" not in made.sql
    (told,) = [one for one in statements if one.kind == "by hand"]
    assert told.what == "partitioning"
    assert "primary key" in told.reason


def test_what_postgresql_refuses_is_a_comment_with_its_words(
    target: psycopg.Connection[Any],
) -> None:
    text = column("WORD", "VARCHAR2", length=5, char_length=5, default="LENGTH('x') || 'toolong'")
    index = InventoryIndex(
        owner="SHOP",
        name="P_IX",
        table_owner="SHOP",
        table="P",
        kind="FUNCTION-BASED NORMAL",
        parts=(IndexPart(text="TO_CHAR(\"DAY\",'MON')", expression=True),),
    )
    view = InventoryView(owner="SHOP", name="V", text="SELECT id + nothing AS x FROM p")
    found = Inventory(
        owners=("SHOP",), tables=(_table(NUMBER, DAY, text),), indexes=(index,), views=(view,)
    )
    statements = tried(target, convert(found, SETTINGS))
    by_kind = {one.kind: one for one in statements}
    assert by_kind["table"].runs
    assert by_kind["default"].runs  # too long is told when a row comes, as in Oracle
    assert "IMMUTABLE" in by_kind["index"].reason
    assert "NOTHING is not a column" in by_kind["view"].reason
    lines = file_texts(statements)["11-index.sql"].splitlines()
    runs = [line for line in lines if not line.startswith("--")]
    assert runs == ["SET standard_conforming_strings = on;", ""]


def test_a_name_of_a_column_that_is_not_created_does_not_end_its_comment(postgres: str) -> None:
    name = "A\n); CREATE TABLE executed (--"
    columns = (column("ID", "NUMBER"), column(name, "BFILE"))
    table = InventoryTable(owner="S", name="T", columns=columns)
    statements = convert(Inventory(owners=("S",), tables=(table,)), SETTINGS)
    (made,) = (one.sql for one in statements if one.kind == "table")
    with (
        psycopg.connect(postgres, autocommit=True) as connection,
        connection.transaction(force_rollback=True),
    ):
        connection.execute("CREATE SCHEMA s")
        connection.execute(made.encode())
        found = connection.execute("SELECT to_regclass('s.t'), to_regclass('executed')").fetchone()
    assert found == ("s.t", None)
