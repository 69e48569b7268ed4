"""The cases that real schemas gave, one by one: what Oracle gives, or a refusal with the reason.

They are not in the repository: ``cases/schema/*.md`` of the folder that OLR_PG_SHARED names. Each
file has its setup, input and expected result; here stands how they are tried.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from olr_pg.config.reading import load_config
from olr_pg.dictionary.inventory import (
    Constraint,
    IndexPart,
    Inventory,
    InventoryColumn,
    InventoryIndex,
    InventoryTable,
    InventoryView,
    MaterializedView,
    Partition,
    Partitioning,
    Trigger,
    UnitSource,
)
from olr_pg.schema.conversion import convert
from olr_pg.schema.relations import Relations
from olr_pg.schema.source_inventory import read_schemas
from olr_pg.schema.statement import Statement
from olr_pg.schema.translating import UntranslatableError
from olr_pg.schema.translation import translate_expression, translate_query
from olr_pg.schema.trial import CREATED, FAILED, PIECE_MAX, PRESENT, Needs, run_statements
from tests.schema.large_schema import LargeSchema, write_files
from tests.schema.shop_relations import SETTINGS, column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from olr_pg.dictionary.model import Snapshot

Target = psycopg.Connection[Any]
FOLDER: Final = (
    Path(os.environ.get("OLR_PG_SHARED", Path(__file__).parents[3] / "shared")) / "cases" / "schema"
)
CASES: Final = sorted(FOLDER.glob("*.md"))


def _text(name: str, length: int = 20, **others: Any) -> InventoryColumn:
    return column(name, "VARCHAR2", length=length, char_length=length, **others)


def _char(name: str, length: int) -> InventoryColumn:
    return column(name, "CHAR", length=length, char_length=length)


def _number(name: str, precision: int = 6, **others: Any) -> InventoryColumn:
    return column(name, "NUMBER", precision=precision, scale=0, **others)


def _table(name: str, *columns: InventoryColumn, **others: Any) -> InventoryTable:
    return InventoryTable(owner="Z", name=name, columns=columns, **others)


TABLES = (
    _table("A", _number("ID"), _number("X"), _text("F", 1)),
    _table("B", _number("ID"), _number("Y"), _text("F", 1)),
    _table("CC", _number("ID"), _number("Z")),
    _table("DD", _number("ID"), _number("W")),
    _table("T", column("ID", "NUMBER"), _char("CH", 3), _text("V", 5),
           column("TZ", "TIMESTAMP(6) WITH TIME ZONE", scale=6)),
    _table("E", _number("ID", nullable=False), _text("NAME"), _char("CODE", 5), _number("DEPT", 4),
           column("HIRED", "DATE"), column("LEFT_D", "DATE"), column("N", "NUMBER"),
           _text("TXT", 100)),
    _table("D", _number("ID", 4, nullable=False), _text("NAME", nullable=False), _text("CITY")),
)  # fmt: skip
CODE = UnitSource(owner="Z", name="BANKDATE", kind="FUNCTION", text="FUNCTION …")
INVENTORY = Inventory(owners=("Z",), tables=TABLES, sources=(CODE,))
RELATIONS = Relations(INVENTORY, SETTINGS)
ROWS = """
INSERT INTO z.a VALUES (1, 1, 'Y'), (2, 2, 'N'), (3, NULL, NULL);
INSERT INTO z.b VALUES (1, 10, 'Y'), (2, 20, 'N'), (4, 40, 'Y');
INSERT INTO z.cc VALUES (10, 100), (20, 200), (40, 400);
INSERT INTO z.dd VALUES (1, 5), (2, 6), (3, 7);
INSERT INTO z.t VALUES (1, 'a', 'x', '2020-06-01 10:00+02'), (2, 'b', 'Y', NULL),
    (3, NULL, NULL, NULL);
INSERT INTO z.e VALUES
    (1, 'Ann', 'AB', 10, '2020-01-31', '2020-03-01 12:00', 0.5, E'a\\nb'),
    (2, 'Bob', 'C', NULL, '2021-05-05', NULL, -0.25, NULL);
INSERT INTO z.d VALUES (10, 'Sales', 'Rome'), (20, 'IT', NULL);
"""


@pytest.fixture
def target(postgres_database: str) -> Iterator[Target]:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        outcomes = run_statements(connection, convert(INVENTORY, SETTINGS))
        assert not [one for one in outcomes if one.state == FAILED]
        connection.execute(ROWS)
        yield connection


def _rows(target: Target, oracle: str) -> list[Any]:
    text, _ = translate_query(oracle, RELATIONS, "Z")
    rows = target.execute(text.encode()).fetchall()
    return sorted((row if len(row) > 1 else row[0] for row in rows), key=str)


def _gives(oracle: str, *rows: Any) -> Callable[[Target], None]:
    def check(target: Target) -> None:
        assert _rows(target, oracle) == sorted(rows, key=str), oracle

    return check


def _refused(oracle: str, reason: str) -> Callable[[Target], None]:
    def check(_target: Target) -> None:
        with pytest.raises(UntranslatableError) as caught:
            translate_query(oracle, RELATIONS, "Z")
        assert reason in str(caught.value)

    return check


def _all(*checks: Callable[[Target], None]) -> Callable[[Target], None]:
    def check(target: Target) -> None:
        for one in checks:
            one(target)

    return check


def _converted(**parts: Any) -> list[Statement]:
    return convert(Inventory(owners=("Y",), **parts), SETTINGS)


def _own(name: str, *columns: InventoryColumn, **others: Any) -> InventoryTable:
    return InventoryTable(owner="Y", name=name, columns=columns, **others)


def _key(table: str, name: str, kind: Any, *columns: str, **others: Any) -> Constraint:
    return Constraint(owner="Y", table=table, name=name, kind=kind, columns=columns, **others)


def _rownum(target: Target) -> None:
    query = "SELECT id, ROW_NUMBER() OVER (ORDER BY id DESC) rn FROM t WHERE ROWNUM <= 2"
    ids, numbers = zip(*_rows(target, query), strict=True)
    assert (set(numbers), sorted(ids)) == ({1, 2}, [1, 2])


def _dates(target: Target) -> None:
    row = target.execute("SELECT CURRENT_DATE").fetchone()
    assert row is not None
    now = row[0]
    for oracle, expected in {
        "TO_DATE('31-12-95','DD-MM-YY')": datetime(2095, 12, 31, tzinfo=UTC),
        "TO_DATE('31-12-95','DD-MM-RRRR')": datetime(1995, 12, 31, tzinfo=UTC),
        "TO_DATE('2020','YYYY')": datetime(2020, now.month, 1, tzinfo=UTC),
        "TO_DATE('10:30','HH24:MI')": datetime(now.year, now.month, 1, 10, 30, tzinfo=UTC),
        "TO_DATE('0102','DDMM')": datetime(now.year, 2, 1, tzinfo=UTC),
    }.items():
        text, _ = translate_expression(oracle, RELATIONS, "Z")
        found = target.execute(f"SELECT {text}".encode()).fetchone()
        assert found == (expected.replace(tzinfo=None),), oracle


def _guids(target: Target) -> None:
    columns = [_text(f"G{size}", size, default="SYS_GUID()") for size in (32, 36)]
    run_statements(target, _converted(tables=(_own("G", *columns),)))
    (row,) = target.execute("INSERT INTO y.g DEFAULT VALUES RETURNING g32, g36").fetchall()
    assert all(len(text) == 32 and text == text.upper() for text in row)


def _names(target: Target) -> None:
    tables = (_own("SAME_NAME", _number("ID"), _number("X")), _own("QUO", _number("C")))
    index = InventoryIndex(owner="Y", name="QUO", table_owner="Y", table="SAME_NAME",
                           parts=(IndexPart(text="X"),))  # fmt: skip
    key = _key("SAME_NAME", "SAME_NAME", "primary key", "ID")
    outcomes = run_statements(
        target, _converted(tables=tables, constraints=(key,), indexes=(index,))
    )
    assert [one for one in outcomes if one.state not in (CREATED, PRESENT)] == []
    made = "SELECT count(*) FROM pg_class WHERE relnamespace = 'y'::regnamespace"
    assert target.execute(made).fetchone() == (4,)


def _deferrable(_target: Target) -> None:
    more = {"deferrable": True, "deferred": True}
    parent = {"parent_owner": "Y", "parent_table": "P", "parent_columns": ("ID",)}
    found = {
        one.name: one
        for one in _converted(
            tables=(_own("P", _number("ID")),),
            constraints=(
                _key("P", "PK", "primary key", "ID", **more),
                _key("P", "FK", "foreign key", "ID", delete_rule="NO ACTION", **parent, **more),
            ),
        )
    }
    assert "DEFERRABLE INITIALLY DEFERRED" in found["Y.P.FK"].sql
    assert "DEFERRABLE" in found["Y.P.PK"].reason


def _lists(_target: Target) -> None:
    parts = (Partition(name="P1", high_value="(1, 'A'), (2, 'B')"),)
    parted = Partitioning(method="LIST", columns=("A", "B"), partitions=parts)
    table = _own("L", _number("A"), _text("B"), partitioning=parted)
    found = _converted(tables=(table,))
    (made,) = (one for one in found if one.kind == "table")
    assert "PARTITION BY" not in made.sql
    assert [one.reason for one in found if "column" in one.reason]


def _locks(_target: Target) -> None:
    statements = [
        Statement("table", f"Y.T{number}", f'CREATE TABLE "y"."t{number}" (a int)')
        for number in range(3 * PIECE_MAX)
    ]
    pieces = list(Needs(statements).pieces())
    assert max(len(one.needed) + len(one.tried) for one in pieces) <= PIECE_MAX


class _WithTemporary(LargeSchema):
    """Of two tables the second is not replicated."""

    def snapshot(self) -> Snapshot:
        found = super().snapshot()
        one, other = found.tables
        return replace(found, tables=(one, replace(other, refusal="is a temporary table")))


def _temporary(folder: Path) -> None:
    (found,) = read_schemas(load_config(write_files(folder, "embedded", _WithTemporary(2, 0))))
    assert len(found.snapshot.tables) == 2


def _views(target: Target) -> None:
    word = _text("C", comment="of a column")
    view = InventoryView(owner="Y", name="V", text="SELECT 'x' c FROM dual", columns=(word,))
    made = MaterializedView(owner="Y", name="M", query="SELECT 'x' c FROM dual")
    stored = _own("M", _text("C"), kind="materialized view", comment="of all")
    index = InventoryIndex(owner="Y", name="M_IX", table_owner="Y", table="M",
                           parts=(IndexPart(text="C"),))  # fmt: skip
    trigger = Trigger(owner="Y", name="TR", kind="BEFORE STATEMENT", event="INSERT",
                      table_owner="Y", table="M", when="1 = 1",
                      body="BEGIN NULL; END;")  # fmt: skip
    statements = _converted(
        tables=(stored,), views=(view,), materialized_views=(made,), indexes=(index,),
        constraints=(_key("M", "M_PK", "primary key", "C"),), triggers=(trigger,),
    )  # fmt: skip
    by_name = {one.name: one for one in statements}
    assert "COMMENT ON COLUMN" in by_name["Y.V.C"].sql
    assert by_name["Y.M_IX"].runs
    assert "unique index" in by_name["Y.M.M_PK"].reason
    assert "WHEN (1 = 1)" in by_name["Y.TR"].source
    assert not [one for one in run_statements(target, statements) if one.state == FAILED]


def _remarks(_target: Target) -> None:
    given = column("K", "NUMBER", default="5", default_on_null=True, nullable=False)
    table = _own("N", given, _number("A"), _number("B"))
    found = _converted(tables=(table,), constraints=(_key("N", "N_UK", "unique", "A", "B"),))
    remarks = " ".join(f"{one.remark} {one.reason}" for one in found)
    assert "NULL" in remarks
    assert "other key columns; PostgreSQL accepts them" in remarks


_JOINED = ((1, 10), (2, 20), (3, None))
_STAR = (
    "SELECT q.left_d - q.hired, q.code||'x', LENGTH(q.code), q.n||'' FROM (SELECT * FROM e) q"
    " WHERE q.id = 1"
)
CHECKS: Final[dict[str, Callable[[Target], None]]] = {
    "01-crash-plus-alias-case": _gives(
        "SELECT t.id, v.y FROM a T, b V WHERE t.id = v.id(+)", *_JOINED
    ),
    "03-plus-reversed-by-case": _gives("SELECT A.id, B.y FROM a, b WHERE A.id = B.id(+)", *_JOINED),
    "05-plus-nondeterministic": _gives(
        "SELECT a.id, b.y, cc.z FROM b, a, cc WHERE b.id(+) = a.id AND cc.id = a.id*10",
        *((1, 10, 100), (2, 20, 200)),
    ),
    "07-outer-join-not-null-concat": _all(
        _gives(
            "SELECT e.name||' '||d.name FROM e LEFT JOIN d ON e.dept = d.id", "Ann Sales", "Bob "
        ),
        _gives("SELECT e.name||' '||d.name FROM e, d WHERE e.dept = d.id(+)", "Ann Sales", "Bob "),
    ),
    "09-nvl-char-concat-loses-value": _all(
        _gives("SELECT NVL(ch,'zz')||'|' FROM t", "a  |", "b  |", "zz|"),
        _gives("SELECT COALESCE(ch,'zz')||'|' FROM t", "a  |", "b  |", "zz|"),
    ),
    "10-ignore-nulls-dropped": _gives(
        "SELECT id, LAST_VALUE(v IGNORE NULLS) OVER (ORDER BY id) FROM t",
        *((1, "x"), (2, "Y"), (3, "Y")),
    ),
    "11-rownum-before-analytic": _rownum,
    "12-char-compared-with-text": _all(
        _gives("SELECT COUNT(*) FROM e WHERE code = RPAD('AB',5)", 1),
        _gives("SELECT COUNT(*) FROM e WHERE code = SUBSTR('ABX',1,2)", 0),
        _gives("SELECT DECODE(code, SUBSTR('ABX',1,2), 1, 0) FROM e WHERE id = 1", 0),
    ),
    "13-char-shadowed-by-subquery": _gives(
        "SELECT code||'x' FROM (SELECT TRIM(code) code FROM e WHERE id = 1)", "ABx"
    ),
    "14-star-subquery-loses-types": _gives(_STAR, (30.5, "AB   x", 5, ".5")),
    "16-to-date-year-and-parts": _dates,
    "18-extract-from-tz": _all(
        _gives("SELECT EXTRACT(HOUR FROM tz) FROM t WHERE id = 1", 8),
        _refused("SELECT TO_CHAR(tz,'HH24') FROM t", "time zone"),
        _refused("SELECT CAST(tz AS DATE) FROM t", "time zone"),
    ),
    "19-sys-guid-text-default": _guids,
    "20-pk-or-index-named-like-table": _names,
    "23-deferrable-lost": _deferrable,
    "25-multi-column-list-partition": _lists,
    "26-trial-needs-a-lock-per-object": _locks,
    "28-star-of-alias-in-capitals": _all(
        _gives("SELECT T.*, 1 k FROM a T WHERE id = 1", (1, 1, "Y", 1)),
        _gives("SELECT ID FROM a JOIN b USING (ID)", 1, 2),
        _gives(
            "WITH r(n) AS (SELECT 1 FROM dual UNION ALL SELECT n+1 FROM r WHERE n<3)"
            " SELECT n FROM r",
            *(1, 2, 3),
        ),
        _gives("SELECT /*+ FULL(t) */ t.id FROM a t", 1, 2, 3),
        _refused("SELECT bankdate FROM dual", "the SQL calls BANKDATE, which is a PL/SQL routine"),
    ),
    "29-comments-and-indexes-of-views": _views,
    "30-nls-dates-as-literals": _refused("SELECT id FROM e WHERE hired > '01/02/2020'", "NLS"),
    "31-default-on-null-and-nullable-unique": _remarks,
}
OF_THE_COMMAND: Final = "27-assess-dies-of-one-table"


@pytest.mark.skipif(not CASES, reason=f"no cases of others in {FOLDER}: set OLR_PG_SHARED")
def test_every_file_has_its_check() -> None:
    assert [one.stem for one in CASES if one.stem not in {*CHECKS, OF_THE_COMMAND}] == []


@pytest.mark.parametrize("name", [one.stem for one in CASES if one.stem != OF_THE_COMMAND])
def test_a_case(name: str, target: Target) -> None:
    CHECKS[name](target)


@pytest.mark.skipif(not CASES, reason=f"no cases of others in {FOLDER}: set OLR_PG_SHARED")
def test_the_case_of_a_table_that_is_not_replicated(tmp_path: Path) -> None:
    _temporary(tmp_path)
