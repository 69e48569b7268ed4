"""A schema of more than 300 objects of all kinds: made with Oracle's results, or named with why.

Written from Oracle's documentation (SQL Language Reference; Database Reference for what the views
say). Defaults, checks, virtual columns and indexes with expressions are in `cases/objects.json`;
each expression and query of the other cases is a view. What comes out of PostgreSQL is compared.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import pytest

from olr_pg.assessment.assessor import assess
from olr_pg.dictionary.inventory import (
    Constraint,
    DatabaseLink,
    Grant,
    IndexPart,
    Inventory,
    InventoryColumn,
    InventoryIndex,
    InventoryTable,
    InventoryView,
    MaterializedView,
    SchedulerJob,
    SchemaObject,
    Synonym,
    Trigger,
    UnitSource,
)
from olr_pg.dictionary.structure import Sequence
from olr_pg.schema.conversion import convert
from olr_pg.schema.relations import Relations
from olr_pg.schema.trial import CREATED, LEFT_OUT, run_statements, tried
from tests.schema.shop_relations import COLUMNS, SETTINGS, column

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from psycopg import Connection

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.schema.statement import Statement

FOLDER = Path(__file__).parent / "cases"
OBJECTS, EXPRESSIONS, QUERIES = (
    json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    for name in ("objects", "expressions", "queries")
)
VIEWED = [case for case in EXPRESSIONS if "NEXTVAL" not in case["oracle"]]
"""Oracle allows no NEXTVAL in a view."""

_TYPE = re.compile(r"(\w+)(?:\((\d+)(?:,(\d+))?\))?")
ROWS = "ORDER BY i = 7 DESC, i = 0 DESC"
SAMPLE = """
INSERT INTO shop.{} (a, b, c, d, e, n, i, ts, price, r) VALUES
    ('Oracle Corp', 'x', 'ab', '2026-01-31 13:30:00', '2025-11-30', 0.5, 7,
        '2026-03-07 01:44:39.5', 12.50, '\\x00ff'),
    (NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL),
    ('  pad ', 'a-b', 'xyz', '2024-02-29', '2024-01-29 12:00:00', -3.25, -5,
        '1999-12-31 23:59:59.999999', 0, NULL);
"""


def _column(name: str, declared: str, **others: Any) -> InventoryColumn:
    found = _TYPE.fullmatch(declared)
    assert found is not None
    kind, first, second = found[1], int(found[2] or 0), found[3]
    if kind == "NUMBER":
        digits: dict[str, Any] = {"precision": first, "scale": int(second or 0)} if first else {}
        return column(name, kind, **digits, **others)
    if kind == "TIMESTAMP":
        return column(name, declared, scale=first, **others)
    if kind in ("RAW", "DATE", "CLOB"):
        return column(name, kind, length=first, **others)
    return column(name, kind, length=first, char_length=first, **others)


CHECKED = (
    *(_column("A", "VARCHAR2(20)"), _column("C", "CHAR(3)"), _column("S", "CHAR(1)")),
    *(_column("I", "NUMBER(9,0)"), _column("N", "NUMBER(10,2)")),
    *(_column("D", "DATE"), _column("E", "DATE")),
)


def _tables() -> Iterator[InventoryTable]:
    yield InventoryTable(owner="SHOP", name="T", columns=COLUMNS)
    yield InventoryTable(owner="SHOP", name="U", columns=COLUMNS)
    made = [
        _column(f"V{n}", case["type"], default=case["oracle"], virtual=True)
        for n, case in enumerate(OBJECTS["columns"])
    ]
    yield InventoryTable(owner="SHOP", name="V", columns=(*COLUMNS, *made))
    given = [
        _column(f"D{n}", case["type"], default=case["oracle"])
        for n, case in enumerate(OBJECTS["defaults"])
    ]
    yield InventoryTable(owner="SHOP", name="GIVEN", columns=tuple(given))
    for n in range(len(OBJECTS["checks"])):
        yield InventoryTable(owner="SHOP", name=f"K{n}", columns=CHECKED)


def _indexes() -> Iterator[InventoryIndex]:
    for n, text in enumerate(OBJECTS["indexes"]):
        yield InventoryIndex(
            owner="SHOP", name=f"IX{n}", table_owner="SHOP", table="V",
            kind="FUNCTION-BASED NORMAL", parts=(IndexPart(text=text, expression=True),),
        )  # fmt: skip
    yield InventoryIndex(
        owner="SHOP", name="BIT_IX", table_owner="SHOP", table="T", kind="BITMAP",
        parts=(IndexPart(text="C", descending=True),),
    )  # fmt: skip
    yield InventoryIndex(
        owner="SHOP", name="TEXT_IX", table_owner="SHOP", table="T", kind="DOMAIN",
        parts=(IndexPart(text="A"),),
    )  # fmt: skip


def _views() -> Iterator[InventoryView]:
    for n, case in enumerate(VIEWED):
        text = f"SELECT {case['oracle']} AS x, i FROM t"
        columns = (column("X", "VARCHAR2"), column("I", "NUMBER"))
        yield InventoryView(owner="SHOP", name=f"E{n}", text=text, columns=columns)
    for n, case in enumerate(QUERIES):
        yield InventoryView(owner="SHOP", name=f"Q{n}", text=case["oracle"])


SOURCES = tuple(
    UnitSource(owner="SHOP", name=name, kind=kind, text=f"{kind} {name} IS BEGIN NULL; END;")
    for kind, name in (
        *(("PROCEDURE", "P1"), ("FUNCTION", "F1"), ("PACKAGE", "PKG"), ("PACKAGE BODY", "PKG")),
        *(("TYPE", "TY1"), ("TYPE BODY", "TY1")),
    )
)


def schema() -> Inventory:
    """Everything, as the views of the dictionary would have it."""
    tables, indexes, views = tuple(_tables()), tuple(_indexes()), tuple(_views())
    of_shop: dict[str, Any] = {"owner": "SHOP"}
    found: dict[str, tuple[Any, ...]] = {
        "TABLE": tables,
        "INDEX": indexes,
        "VIEW": views,
        "SEQUENCE": (
            Sequence(owner="SHOP", name="SEQ", next=1), Sequence(owner="SHOP", name="S", next=1),
        ),
        "MATERIALIZED VIEW": (
            MaterializedView(**of_shop, name="MV", query="SELECT i, COUNT(*) n FROM t GROUP BY i"),
        ),
        "SYNONYM": (Synonym(**of_shop, name="SYN", target_owner="SHOP", target="T"),),
        "TRIGGER": (
            Trigger(**of_shop, name="TRG", kind="BEFORE EACH ROW", event="INSERT",
                    table_owner="SHOP", table="T", body="BEGIN :NEW.b := TRIM(:NEW.b); END;"),
        ),
        "JOB": (
            SchedulerJob(**of_shop, name="JOB1", kind="PLSQL_BLOCK", action="p1;",
                         schedule="DAILY"),
        ),
        "DATABASE LINK": (DatabaseLink(**of_shop, name="FAR", user="X", host="far"),),
    }  # fmt: skip
    objects = [
        SchemaObject(owner="SHOP", name=one.name, kind=kind)
        for kind, ones in found.items()
        for one in ones
    ]
    objects += [SchemaObject(owner="SHOP", name=one.name, kind=one.kind) for one in SOURCES]
    objects += [SchemaObject(owner="SHOP", name="Q1", kind="QUEUE")]
    return Inventory(
        owners=("SHOP",),
        tables=tables,
        indexes=indexes,
        views=views,
        sequences=found["SEQUENCE"],
        materialized_views=found["MATERIALIZED VIEW"],
        synonyms=found["SYNONYM"],
        triggers=found["TRIGGER"],
        jobs=found["JOB"],
        links=found["DATABASE LINK"],
        sources=SOURCES,
        constraints=tuple(_constraints()),
        grants=(Grant(owner="SHOP", name="T", grantee="PUBLIC", privilege="SELECT"),),
        objects=tuple(objects),
    )


def _constraints() -> Iterator[Constraint]:
    for n, case in enumerate(OBJECTS["checks"]):
        yield Constraint(
            owner="SHOP", name=f"K{n}_CK", table=f"K{n}", kind="check", condition=case["oracle"]
        )
    yield Constraint(owner="SHOP", name="U_UK", table="U", kind="unique", columns=("I",))
    yield Constraint(
        owner="SHOP", name="T_FK", table="T", kind="foreign key", columns=("I",),
        parent_owner="SHOP", parent_table="U", parent_columns=("I",), delete_rule="CASCADE",
    )  # fmt: skip


class Judged(NamedTuple):
    """An object, and whether PostgreSQL gives Oracle's results for it."""

    name: str
    right: bool
    why: str


def _same(found: Any, expected: Any) -> bool:
    if found is None or expected is None:
        return found is expected
    if expected in ("now", "guid"):
        if expected == "guid":
            return re.fullmatch(r"\\x[0-9a-f]{32}", str(found)) is not None
        at = datetime.fromisoformat(str(found)).replace(tzinfo=UTC)
        return abs(at - datetime.now(UTC)) < timedelta(days=2)
    if str(found) == str(expected):
        return True
    try:
        return bool(abs(Decimal(str(found)) - Decimal(str(expected))) < Decimal("1e-15"))
    except InvalidOperation:
        return False


class _Judge:
    """Compares what the target gives with what the cases say."""

    def __init__(self, target: Connection[Any], reasons: Mapping[str, str]) -> None:
        self._target = target
        self._reasons = reasons

    def _rows(self, query: str) -> list[Any]:
        return self._target.execute(query.encode()).fetchall()

    def _judged(self, name: str, right: Any) -> Judged:
        reason = self._reasons.get(name, "")
        return Judged(name, bool(right()) if not reason else False, reason or "other results")

    def defaults(self) -> Iterator[Judged]:
        self._target.execute("INSERT INTO shop.given DEFAULT VALUES")
        for n, case in enumerate(OBJECTS["defaults"]):
            ((found,),) = self._rows(f"SELECT d{n}::text FROM shop.given")
            if case["type"].startswith("CHAR"):
                ((found,),) = self._rows(
                    f"SELECT rpad(d{n}::text, {case['type'][5:-1]}) FROM shop.given"
                )
            is_null = case["oracle"] == "NULL" and found is None
            judged = self._judged(f"SHOP.GIVEN.D{n}", lambda f=found, c=case: _same(f, c["result"]))
            yield judged._replace(right=judged.right or is_null)

    def checks(self) -> Iterator[Judged]:
        for n, case in enumerate(OBJECTS["checks"]):
            yield self._judged(f"SHOP.K{n}.K{n}_CK", lambda n=n, case=case: self._check(n, case))

    def _check(self, number: int, case: dict[str, Any]) -> bool:
        return all(
            row is None or self._takes(number, row) is wanted
            for row, wanted in ((case["good"], True), (case["bad"], False))
        )

    def _takes(self, number: int, row: dict[str, Any]) -> bool:
        names = ", ".join(name.lower() for name in row)
        values = ", ".join("%s" for _ in row)
        what = f"({names}) VALUES ({values})" if row else "DEFAULT VALUES"
        try:
            with self._target.transaction(force_rollback=True):
                query = f"INSERT INTO shop.k{number} {what}"
                self._target.execute(query.encode(), [str(value) for value in row.values()])
        except psycopg.errors.CheckViolation:
            return False
        return True

    def columns(self) -> Iterator[Judged]:
        for n, case in enumerate(OBJECTS["columns"]):
            yield self._judged(
                f"SHOP.V.V{n}",
                lambda n=n, case=case: self._has(f"SELECT v{n}::text FROM shop.v {ROWS}", case),
            )

    def _has(self, query: str, case: dict[str, Any]) -> bool:
        found = [row[0] for row in self._rows(query)]
        expected = case.get("results")
        return expected is None or all(map(_same, found, expected))

    def indexes(self) -> Iterator[Judged]:
        for n in range(len(OBJECTS["indexes"])):
            yield self._judged(f"SHOP.IX{n}", lambda: True)

    def views(self) -> Iterator[Judged]:
        for n, case in enumerate(VIEWED):
            yield self._judged(
                f"SHOP.E{n}",
                lambda n=n, case=case: self._has(f"SELECT x::text FROM shop.e{n} {ROWS}", case),
            )
        for n, case in enumerate(QUERIES):
            if "refused" not in case:
                yield self._judged(f"SHOP.Q{n}", lambda n=n, case=case: self._shows(n, case))

    def _shows(self, number: int, case: dict[str, Any]) -> bool:
        rows = self._rows(f"SELECT * FROM shop.q{number}")
        found = [[None if value is None else str(value) for value in row] for row in rows]
        return sorted(found, key=str) == sorted(case["results"], key=str)


@pytest.fixture
def target(postgres_database: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        yield connection


def test_nearly_everything_has_oracles_results_and_the_rest_is_named(
    target: Connection[Any], shop_snapshot: Snapshot
) -> None:
    inventory = schema()
    statements = tried(target, convert(inventory, SETTINGS))
    outcomes = run_statements(target, statements)
    # Of a foreign key there is nothing to compare; the rows of the sample have none to refer to.
    target.execute("ALTER TABLE shop.t DROP CONSTRAINT t_fk")
    for table in ("t", "v"):
        target.execute(SAMPLE.format(table).encode())
    target.execute("INSERT INTO shop.u SELECT * FROM shop.t WHERE i <> 0")
    reasons = {one.statement.name: one.reason for one in outcomes if one.state != CREATED}
    assert {one.state for one in outcomes} == {CREATED, LEFT_OUT}
    judge = _Judge(target, reasons)
    judged = [
        one
        for part in (judge.defaults, judge.checks, judge.columns, judge.indexes, judge.views)
        for one in part()
    ]
    wrong = [one for one in judged if not one.right]
    assert len(judged) > 300
    assert [one for one in wrong if one.why == "other results"] == []
    assert 1 - len(wrong) / len(judged) >= 0.95, wrong
    _everything_is_named(inventory, shop_snapshot, statements)


def _everything_is_named(
    inventory: Inventory, snapshot: Snapshot, statements: list[Statement]
) -> None:
    """Say where each object went: nothing is passed over, and what was not made has its reason."""
    report = assess(inventory, snapshot, frozenset(), Relations(inventory, SETTINGS), statements)
    told = [(item.kind, item.name) for item in report.items if item.is_object]
    assert sorted(told) == sorted((one.kind, one.full_name) for one in inventory.objects)
    assert all(one.reason for one in statements if not one.runs)
    assert all(item.reasons for item in report.items if item.minutes)
