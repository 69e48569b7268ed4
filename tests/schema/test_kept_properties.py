"""What a source says of its objects beside their kind: made in PostgreSQL, or named."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.datatypes.choices import Choices, ColumnChoice
from olr_pg.dictionary.inventory import (
    Constraint,
    Grant,
    IndexPart,
    Inventory,
    InventoryIndex,
    InventoryTable,
    InventoryView,
    MaterializedView,
    Partition,
    Partitioning,
    Trigger,
    UnitSource,
)
from olr_pg.dictionary.structure import Sequence
from olr_pg.schema.conversion import convert
from olr_pg.schema.statement import file_texts
from olr_pg.schema.trial import CREATED, PRESENT, run_statements, tried
from tests.schema.shop_relations import SETTINGS, column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.schema.statement import Statement

ID = column("ID", "NUMBER", precision=9, scale=0, nullable=False)
OTHER = column("OTHER", "NUMBER", precision=9, scale=0)
WORD = column("WORD", "VARCHAR2", length=40, char_length=40)


@pytest.fixture
def target(postgres_database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        yield connection


def _table(name: str, *columns: Any, **others: Any) -> InventoryTable:
    return InventoryTable(owner="K", name=name, columns=columns or (ID, OTHER, WORD), **others)


def _constraint(table: str, name: str, kind: Any, *columns: str, **others: Any) -> Constraint:
    return Constraint(owner="K", name=name, table=table, kind=kind, columns=columns, **others)


def _index(table: str, name: str, part: str = "OTHER") -> InventoryIndex:
    return InventoryIndex(
        owner="K", name=name, table_owner="K", table=table, parts=(IndexPart(text=part),)
    )


def _by_name(inventory: Inventory, name: str) -> list[Statement]:
    return [one for one in convert(inventory, SETTINGS) if one.name == name]


def test_indexes_and_keys_may_have_the_names_of_tables_and_views(
    target: psycopg.Connection[Any],
) -> None:
    """Oracle keeps their names apart; PostgreSQL does not."""
    parted = Partitioning(
        method="LIST", columns=("ID",), partitions=(Partition(name="B", high_value="1"),)
    )
    found = Inventory(
        owners=("K",),
        tables=(
            _table("SAME"), _table("QUO"), _table("A", partitioning=parted), _table("A_B"),
            _table("SHOWN_IDX"),
        ),
        constraints=(
            _constraint("SAME", "SAME", "primary key", "ID"),
            _constraint("QUO", "SHOWN", "unique", "ID"),
        ),
        indexes=(_index("SAME", "QUO"), _index("QUO", "SHOWN")),
        views=(InventoryView(owner="K", name="SHOWN", text="SELECT 1 AS id FROM dual"),),
    )  # fmt: skip
    statements = tried(target, convert(found, SETTINGS))
    outcomes = run_statements(target, statements)
    assert {one.state for one in outcomes} == {CREATED}
    assert {one.state for one in run_statements(target, statements)} == {PRESENT}
    names = target.execute(
        "SELECT relname, relkind::text FROM pg_class WHERE relnamespace = 'k'::regnamespace"
    ).fetchall()
    assert {*names} >= {
        *(("same", "r"), ("same_pkey", "i"), ("quo", "r"), ("quo_idx", "i"), ("shown", "v")),
        *(("shown_key", "i"), ("shown_idx", "r"), ("shown_idx2", "i"), ("a_b", "r")),
        ("a_b_part", "r"),
    }


def test_what_defers_a_constraint_is_kept_or_named(target: psycopg.Connection[Any]) -> None:
    parent = {"parent_owner": "K", "parent_table": "P", "parent_columns": ("ID",)}
    deferred = {"deferrable": True, "deferred": True}
    found = Inventory(
        owners=("K",),
        tables=(_table("P"), _table("C")),
        constraints=(
            _constraint("P", "P_PK", "primary key", "ID", deferrable=True),
            _constraint("C", "C_FK", "foreign key", "OTHER", **parent, **deferred),
            _constraint("C", "C_CK", "check", condition="id > 0", **deferred),
        ),
    )
    statements = tried(target, convert(found, SETTINGS))
    run_statements(target, statements)
    row = target.execute(
        "SELECT condeferrable, condeferred FROM pg_constraint WHERE conname = 'c_fk'"
    ).fetchone()
    assert row == (True, True)
    (key,) = (one for one in statements if one.name == "K.P.P_PK")
    assert "without DEFERRABLE" in key.reason
    (check,) = (one for one in statements if one.name == "K.C.C_CK")
    assert "PostgreSQL checks it immediately" in check.remark


def test_constraints_that_rows_may_break_are_named_and_not_made() -> None:
    """A row that breaks one of them could not be loaded."""
    late = {"validated": False}
    found = Inventory(
        owners=("K",),
        tables=(_table("T"),),
        constraints=(
            _constraint("T", "T_CK", "check", condition="id > 0", **late),
            _constraint(
                "T", "T_NN", "check", "OTHER", condition='"OTHER" IS NOT NULL', not_null=True,
                **late,
            ),
            _constraint(
                "T", "T_ID", "check", "ID", condition='"ID" IS NOT NULL', not_null=True
            ),
            _constraint("T", "T_UK", "unique", "OTHER", **late),
        ),
    )  # fmt: skip
    for name in ("K.T.T_CK", "K.T.T_NN", "K.T.T_UK"):
        (one,) = _by_name(found, name)
        assert "NOVALIDATE" in one.reason
    (one,) = _by_name(found, "K.T.T_NN")
    assert one.sql.endswith('CHECK (NOT "other" IS NULL) NOT VALID')
    assert not _by_name(found, "K.T.T_ID")


def test_keys_that_may_be_null_in_part_are_named() -> None:
    found = Inventory(
        owners=("K",),
        tables=(_table("T"),),
        constraints=(_constraint("T", "T_UK", "unique", "ID", "OTHER"),),
    )
    (one,) = _by_name(found, "K.T.T_UK")
    assert "if OTHER is NULL" in one.remark
    assert one.remark in "".join(file_texts([one]).values())


def test_unique_indexes_that_may_be_null_in_part_are_named() -> None:
    def remark(*parts: IndexPart, unique: bool = True) -> str:
        index = InventoryIndex(
            owner="K", name="IX", table_owner="K", table="T", unique=unique, parts=parts,
            kind="FUNCTION-BASED NORMAL",
        )  # fmt: skip
        (one,) = _by_name(Inventory(owners=("K",), tables=(_table("T"),), indexes=(index,)), "K.IX")
        return one.remark

    key, other = IndexPart(text="ID"), IndexPart(text="OTHER")
    upper = IndexPart(text="UPPER(WORD)", expression=True)
    assert "if OTHER is NULL" in remark(key, other)
    assert "if UPPER(WORD) is NULL" in remark(key, upper)
    assert {remark(key), remark(other), remark(upper), remark(key, other, unique=False)} == {""}


def test_defaults_have_the_type_of_their_column(target: psycopg.Connection[Any]) -> None:
    made = (
        column("A", "VARCHAR2", length=32, char_length=32, default="SYS_GUID()"),
        column("B", "RAW", length=16, default="SYS_GUID()"),
        column("C", "NUMBER", default="'7'"),
        column("D", "VARCHAR2", length=9, char_length=9, default="1/2"),
        column("E", "DATE", default="'01/02/2020'"),
        column("F", "VARCHAR2", length=9, char_length=9, default="SYSDATE"),
        column("G", "NUMBER", default="5", default_on_null=True, nullable=False),
        column("H", "RAW", length=16, default="'00ff'"),
    )
    statements = tried(
        target, convert(Inventory(owners=("K",), tables=(_table("T", *made),)), SETTINGS)
    )
    run_statements(target, statements)
    target.execute("INSERT INTO k.t DEFAULT VALUES")
    row = target.execute(
        "SELECT a ~ '^[0-9A-F]{32}$', length(b), c, d, e, f, g, h FROM k.t"
    ).fetchone()
    assert row is not None
    assert row[:4] == (True, 16, 7, ".5")
    assert row[4:] == (None, None, 5, b"\x00\xff")
    reasons = {one.name: one.reason for one in statements if one.kind == "default"}
    assert "depends on NLS" in reasons["K.T.E"]
    assert "depends on NLS" in reasons["K.T.F"]
    assert "DEFAULT ON NULL" in next(one.remark for one in statements if one.name == "K.T.G")


def test_a_list_of_several_columns_parts_no_table() -> None:
    parted = Partitioning(
        method="LIST",
        columns=("ID", "OTHER"),
        partitions=(Partition(name="P1", high_value="( 1, 2 )"),),
    )
    found = Inventory(owners=("K",), tables=(_table("T", partitioning=parted),))
    table, named = _by_name(found, "K.T")
    assert "PARTITION" not in table.sql
    assert "without partitions" in named.reason


def test_comments_and_indexes_of_views_are_made(target: psycopg.Connection[Any]) -> None:
    described = column("ID", "NUMBER", comment="its number")
    query = "SELECT id, other FROM t"
    stored = (column("ID", "NUMBER", comment="kept"), OTHER)
    found = Inventory(
        owners=("K",),
        tables=(_table("T"), _table("M", *stored, kind="materialized view", comment="the rows")),
        views=(
            InventoryView(
                owner="K", name="V", text="SELECT id FROM t", columns=(described,), read_only=True
            ),
        ),
        materialized_views=(MaterializedView(owner="K", name="M", query=query),),
        indexes=(_index("M", "M_IX"),),
        constraints=(_constraint("M", "M_PK", "primary key", "ID"),),
    )
    statements = tried(target, convert(found, SETTINGS))
    assert {one.state for one in run_statements(target, [s for s in statements if s.runs])} == {
        CREATED
    }
    comments = target.execute(
        "SELECT description FROM pg_description d JOIN pg_class c ON"
        " c.oid = d.objoid WHERE relnamespace = 'k'::regnamespace"
    ).fetchall()
    assert sorted(comments) == [("its number",), ("kept",), ("the rows",)]
    assert target.execute("SELECT to_regclass('k.m_ix') IS NOT NULL").fetchone() == (True,)
    (key,) = (one for one in statements if one.name == "K.M.M_PK")
    assert "unique index" in key.reason
    assert "READ ONLY" in next(one.remark for one in statements if one.name == "K.V")


def test_the_condition_of_a_trigger_is_listed() -> None:
    trigger = Trigger(
        owner="K", name="TR", kind="BEFORE EACH ROW", event="UPDATE", table_owner="K", table="T",
        when="new.id > 0", body="BEGIN NULL; END;",
    )  # fmt: skip
    (one,) = _by_name(Inventory(owners=("K",), triggers=(trigger,)), "K.TR")
    assert "WHEN (new.id > 0)" in one.source


def test_long_names_of_keys_stay_apart(target: psycopg.Connection[Any]) -> None:
    long = "A" * 70
    found = Inventory(
        owners=("K",),
        tables=(_table("T"), _table("U")),
        constraints=(
            _constraint("T", f"{long}1", "unique", "ID"),
            _constraint("U", f"{long}2", "unique", "ID"),
        ),
    )
    statements = tried(target, convert(found, SETTINGS))
    assert {one.state for one in run_statements(target, statements)} == {CREATED}
    assert {one.state for one in run_statements(target, statements)} == {PRESENT}


def test_a_foreign_key_between_numbers_of_other_types_says_what_to_choose(
    target: psycopg.Connection[Any],
) -> None:
    """NUMBER(3) is a smallint and NUMBER a numeric; the other way round PostgreSQL takes it."""
    small, plain = column("A", "NUMBER", precision=3, scale=0), column("B", "NUMBER")
    inventory = Inventory(
        owners=("K",),
        tables=(_table("X", small, plain),),
        constraints=(
            _constraint("X", "X_A", "unique", "A"),
            _constraint("X", "X_B", "unique", "B"),
            *(
                _constraint("X", name, "foreign key", own, parent_owner="K", parent_table="X",
                            parent_columns=(other,), delete_rule="NO ACTION")
                for name, own, other in (("GOOD", "A", "B"), ("BAD", "B", "A"))
            ),
        ),
    )  # fmt: skip
    found = {
        one.statement.name: one for one in run_statements(target, convert(inventory, SETTINGS))
    }
    assert found["K.X.GOOD"].state == CREATED
    assert '"K.X.A": {"type": "numeric"}' in found["K.X.BAD"].reason
    choices = Choices(columns={"K.X.A": ColumnChoice(type_name="numeric")})
    chosen = replace(SETTINGS, choices=choices)
    assert all(one.runs for one in convert(inventory, chosen))


def test_own_contexts_become_settings(target: psycopg.Connection[Any]) -> None:
    text = "SELECT SYS_CONTEXT('Bank_Ctx', 'USER_ID') u FROM dual"
    view = InventoryView(owner="K", name="W", text=text, columns=(WORD,))
    inventory = Inventory(owners=("K",), views=(view,))
    (refused,) = (one for one in convert(inventory, SETTINGS) if one.kind == "view")
    assert "apply.contexts" in refused.reason
    mapped = replace(SETTINGS, choices=Choices(contexts={"BANK_CTX": "bank"}))
    run_statements(target, convert(inventory, mapped))
    assert target.execute("SELECT * FROM k.w").fetchone() == (None,)
    target.execute("SET bank.user_id = '7'")
    assert target.execute("SELECT * FROM k.w").fetchone() == ("7",)


def test_grants_let_roles_use_tables_sequences_and_routines(
    target: psycopg.Connection[Any],
) -> None:
    """A privilege in PostgreSQL needs USAGE of the schema, which Oracle does not have."""
    body = "FUNCTION f RETURN NUMBER IS BEGIN RETURN 7; END;"
    units = (
        UnitSource(owner="K", name="F", kind="FUNCTION", text=body),
        UnitSource(owner="K", name="P", kind="PACKAGE", text=f"PACKAGE p IS {body[:24]}; END;"),
        UnitSource(owner="K", name="P", kind="PACKAGE BODY", text=f"PACKAGE BODY p IS {body} END;"),
        UnitSource(owner="K", name="U", kind="PROCEDURE", text="PROCEDURE u IS BEGIN COMMIT; END;"),
    )
    given = [
        *(
            ("T", "READ", "R1"),
            ("T", "SELECT", "R2"),
            ("S", "SELECT", "R1"),
            ("F", "EXECUTE", "R1"),
        ),
        *(("P", "EXECUTE", "R1"), ("T", "FLASHBACK", "R1"), ("S", "ALTER", "R1")),
        *(("U", "EXECUTE", "R1"), ("T", "SELECT", "PUBLIC")),
    ]
    found = Inventory(
        owners=("K",),
        tables=(_table("T"),),
        sequences=(Sequence(owner="K", name="S", next=5),),
        sources=units,
        grants=tuple(
            Grant(owner="K", name=name, privilege=privilege, grantee=role)
            for name, privilege, role in given
        ),
    )
    with target.transaction(force_rollback=True):
        target.execute("CREATE ROLE r1; CREATE ROLE r2")
        statements = tried(target, convert(found, SETTINGS))
        outcomes = run_statements(target, statements)
        again = run_statements(target, statements)
        assert {one.state for one in outcomes if one.statement.runs} == {CREATED}
        assert {one.state for one in again if one.statement.runs} <= {CREATED, PRESENT}
        target.execute("SET LOCAL ROLE r1")
        row = target.execute("SELECT count(*), nextval('k.s'), k.f(), p.f() FROM k.t").fetchone()
        assert row == (0, 5, 7, 7)
        target.execute("SET LOCAL ROLE r2")
        assert target.execute("SELECT count(*) FROM k.t").fetchone() == (0,)
    reasons = {one.name: one.reason for one in statements if one.kind == "grant" and one.reason}
    assert reasons == {
        "K.T.FLASHBACK.R1": "PostgreSQL has no privilege FLASHBACK",
        "K.S.ALTER.R1": "PostgreSQL has no privilege ALTER",
        "K.U.EXECUTE.R1": "K.U is not created",
    }
    assert sum("USAGE ON SCHEMA" in one.sql for one in statements) == 4


def test_dates_as_text_can_be_stored(target: psycopg.Connection[Any]) -> None:
    """PostgreSQL's TO_CHAR is not IMMUTABLE, so indexes and generated columns cannot use it."""
    forms = (
        *("YYYY", "YYYYMM", "YYYY-MM-DD HH24:MI:SS", 'YYYY"-Q"Q', "IYYY-IW", "YYYYDDD"),
        *("DD.MM.YYYY", 'MM/DD "oclock" HH24'),
    )
    made = [
        column(f"V{at}", "VARCHAR2", length=40, char_length=40, virtual=True,
               default="TO_CHAR(d, '{}')".format(form.replace("'", "''")))
        for at, form in enumerate(forms)
    ]  # fmt: skip
    table = _table("T", column("D", "TIMESTAMP(3)", scale=3), *made)
    index = InventoryIndex(
        owner="K", name="IX", table_owner="K", table="T", kind="FUNCTION-BASED NORMAL",
        parts=(IndexPart(text="TO_CHAR(d, 'YYYYMM')", expression=True),),
    )  # fmt: skip
    found = Inventory(owners=("K",), tables=(table,), indexes=(index,))
    outcomes = run_statements(target, tried(target, convert(found, SETTINGS)))
    assert {one.state for one in outcomes} == {CREATED}
    target.execute(
        "INSERT INTO k.t (d) SELECT generate_series('1899-12-30'::timestamp, '2031-01-02',"
        " '37 days 11:11:13.7')"
    )
    for at, form in enumerate(forms):
        query = f"SELECT count(*) FROM k.t WHERE v{at} IS DISTINCT FROM to_char(d, %s)"
        assert target.execute(query.encode(), (form,)).fetchone() == (0,)
