"""Tables that come later: reported once, if the subscription would name them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from olr_pg.decoding.new_tables import (
    CREATE_TABLE,
    Begin,
    NewTables,
    any_wants,
    is_made_without_rows,
)
from olr_pg.dictionary.committed_changes import Statement
from olr_pg.dictionary.model import Column, Table
from olr_pg.dictionary.sys_tables import WITHOUT_ROWS

COLUMNS = (Column("ID", 1, 1, 1, 2, 22),)


def table(name: str) -> Table:
    return Table("APP", name, 7, 7, COLUMNS)


def reported(tables: NewTables, *changes: tuple[Table | None, Table | None]) -> list[str]:
    with capture_logs() as logs:
        for scn, (before, after) in enumerate(changes, 100):
            tables.see(7, before, after, scn)
    return [entry["table"] for entry in logs]


@pytest.fixture
def watching() -> NewTables:
    tables = NewTables()
    tables.watch_for(lambda owner, _: owner == "APP")
    return tables


def test_a_new_or_renamed_table_is_reported_once(watching: NewTables) -> None:
    one, other = table("T"), table("U")
    assert reported(watching, (None, one), (one, one), (one, other)) == ["APP.T", "APP.U"]


def test_a_table_of_the_snapshot_is_followed_under_any_name(watching: NewTables) -> None:
    one, other, third = table("T"), table("U"), table("V")
    assert reported(watching, (one, other), (other, third), (third, one)) == []


def test_a_table_of_the_snapshot_that_was_not_wanted_is_reported_with_a_wanted_name() -> None:
    tables = NewTables()
    tables.watch_for(lambda _owner, name: name == "T")
    assert reported(tables, (table("OTHER"), table("T"))) == ["APP.T"]


def test_the_recycle_bin_and_other_owners_are_not(watching: NewTables) -> None:
    assert reported(watching, (None, table("BIN$x"))) == []
    assert reported(watching, (None, Table("HR", "T", 7, 7, COLUMNS))) == []


def test_what_came_before_the_subscription_is_reported_with_it() -> None:
    tables = NewTables()
    assert reported(tables, (None, table("T"))) == []
    with capture_logs() as logs:
        tables.watch_for(lambda _owner, _name: True)
    assert [entry["scn"] for entry in logs] == [100]


@pytest.mark.parametrize("reason", sorted(WITHOUT_ROWS))
def test_a_table_whose_rows_are_never_in_redo_is_not_reported(
    watching: NewTables, reason: str
) -> None:
    """Such as SYS_TEMP_FBT, which FLASHBACK TABLE … TO SCN creates in the schema of the table."""
    made = replace(table("SYS_TEMP_FBT"), refusal=reason)
    with capture_logs() as logs:
        watching.see(8, None, made, 30)
    assert logs == []


def test_a_dropped_table_is_forgotten() -> None:
    tables = NewTables()
    reported(tables, (None, table("T")), (table("T"), None))
    with capture_logs() as logs:
        tables.watch_for(lambda _owner, _name: True)
    assert logs == []


def test_a_statement_alone_tells_of_a_created_table(watching: NewTables) -> None:
    with capture_logs() as logs:
        watching.see_statement(Statement(CREATE_TABLE, 0, "APP", "T", "", 5), 6)
        watching.see_statement(Statement(15, 0, "APP", "U", "", 5), 6)
    assert [entry["table"] for entry in logs] == ["APP.T"]


def made_by(text: str, obj: int = 7) -> Statement:
    return Statement(CREATE_TABLE, obj, "APP", "T", text, 5)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (id NUMBER)",
        "create table t (note VARCHAR2(40) DEFAULT ' as select ') -- as select",
        "CREATE TABLE t (n NUMBER, twice AS (n * 2)) /* AS\nSELECT */",
        'CREATE TABLE t FOR EXCHANGE WITH TABLE "S"',
        'CREATE TABLE "AS SELECT" (id NUMBER)',
        "CREATE TABLE t (note VARCHAR2(40) DEFAULT q'[it's as select]')",
        "CREATE TABLE t (note VARCHAR2(40) DEFAULT nq'!'as select!')",
    ],
)
def test_a_table_that_is_made_without_rows(text: str) -> None:
    assert is_made_without_rows(table("T"), [made_by(text)])
    assert is_made_without_rows(table("T"), [made_by(text, obj=0)])  # by its name


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t AS SELECT * FROM s",
        "create table t (id) as\n  ( select 1 from dual)",
        "CREATE TABLE t AS /* all */ WITH x AS (SELECT 1 FROM dual) SELECT * FROM x",
        "CREATE TABLE t (id NUMBER) STORAGE (SEG_FILE 5 SEG_BLOCK 130 OBJNO_REUSE 88)",
        "",
    ],
)
def test_a_table_that_may_have_rows_from_the_beginning(text: str) -> None:
    assert not is_made_without_rows(table("T"), [made_by(text)])


def test_without_its_statement_nobody_knows_what_it_holds() -> None:
    others = [made_by("CREATE TABLE u (id NUMBER)", obj=8)._replace(name="U")]
    others.append(made_by("ALTER TABLE t ADD (a NUMBER)")._replace(command=15))
    assert not is_made_without_rows(table("T"), others)


def test_a_table_that_may_not_be_wanted_is_reported_and_not_taken() -> None:
    taken = list[str]()

    def take(made: Table, _: Begin) -> bool:
        taken.append(made.full_name)
        return True

    tables = NewTables(take)
    tables.watch_for(lambda _owner, name: None if name == "T" else True)
    with capture_logs() as logs:
        tables.see(7, None, table("T"), 100, [made_by("CREATE TABLE t (id NUMBER)")])
        other = made_by("CREATE TABLE u (id NUMBER)", obj=8)._replace(name="U")
        tables.see(8, None, replace(table("U"), obj=8), 101, [other])

    assert taken == ["APP.U"]
    assert [(entry["table"], entry["code"]) for entry in logs] == [("APP.T", "OLR-03080")]
    assert "only Oracle can run the query in `apply.tables`" in logs[0]["reason"]


@pytest.mark.parametrize(
    ("answers", "wanted"),
    [((False, None, True), True), ((False, None), None), ((False, False), False), ((), False)],
)
def test_what_one_of_several_targets_wants_is_wanted(
    answers: tuple[bool | None, ...], wanted: bool | None
) -> None:
    assert any_wants(answers) is wanted


def test_a_table_that_is_taken_is_not_reported() -> None:
    taken = list[tuple[str, Begin]]()

    def take(made: Table, begin: Begin) -> bool:
        taken.append((made.name, begin))
        return not begin.has_rows

    tables = NewTables(take)
    tables.watch_for(lambda owner, _: owner == "APP")
    with capture_logs() as logs:
        tables.see(7, None, table("T"), 100, [made_by("CREATE TABLE t (id NUMBER)")])
        tables.see(7, table("T"), table("RENAMED"), 101)
        tables.see(8, None, table("FILLED"), 102, [made_by("CREATE TABLE filled AS SELECT 1")])
        tables.see_renamed(table("T"), table("U"), 103)
        tables.see_renamed(Table("HR", "T", 7, 7, COLUMNS), table("V"), 104)
    assert taken == [
        ("T", Begin(100)),
        ("RENAMED", Begin(101, has_rows=True)),
        ("FILLED", Begin(102, has_rows=True)),
        ("U", Begin(103, is_renamed=True)),
        ("V", Begin(104, is_renamed=True, has_rows=True)),
    ]
    assert tables.taken == {"APP.T", "APP.U"}
    assert [entry["table"] for entry in logs] == ["APP.RENAMED", "APP.FILLED", "APP.V"]


def test_the_history_of_a_name_begins_with_its_first_table_though_that_was_dropped() -> None:
    """An earlier run, which took no table, has recorded its DDL."""
    taken = list[tuple[Table, Begin]]()

    def take(made: Table, begin: Begin) -> bool:
        taken.append((made, begin))
        return not begin.has_rows

    first, second = table("T"), replace(table("T"), obj=9)
    tables = NewTables(take)
    tables.see(7, None, first, 100, [made_by("CREATE TABLE t (id NUMBER)")])
    tables.see(7, first, None, 101)
    tables.see_again(second, 102, is_empty=True)
    tables.watch_for(lambda owner, _: owner == "APP")
    assert taken == [(first, Begin(100, is_past=True))]
    third = replace(second, obj=10)
    with capture_logs() as logs:
        tables.see_again(third, 103, is_empty=False)
    assert taken[1:] == [(third, Begin(103, has_rows=True))]
    assert [entry["scn"] for entry in logs] == [103]


def test_a_table_whose_name_an_earlier_one_had_begins_in_redo_that_was_passed() -> None:
    taken = list[Begin]()

    def take(_made: Table, begin: Begin) -> bool:
        taken.append(begin)
        return True

    tables = NewTables(take)
    tables.see(7, None, table("T"), 100, [made_by("CREATE TABLE t (id NUMBER)")])
    tables.see(7, table("T"), None, 101)
    tables.watch_for(lambda owner, _: owner == "APP")
    tables.see_again(replace(table("T"), obj=9), 102, is_empty=True)
    assert taken == [Begin(100, is_past=True)]


def test_a_table_that_will_be_loaded_is_not_reported_and_its_history_does_not_begin() -> None:
    tables = NewTables(lambda *_: True)
    tables.watch_for(lambda owner, _: owner == "APP")
    with capture_logs() as logs:
        tables.see(8, None, table("FILLED"), 102, [made_by("CREATE TABLE filled AS SELECT 1")])
    assert (logs, tables.taken) == ([], set())


def test_a_dropped_table_was_needed_under_the_name_that_it_had_before_a_rename() -> None:
    """Its rows are those of the new name, which a later table may continue."""
    taken = list[tuple[str, Begin]]()

    def take(made: Table, begin: Begin) -> bool:
        taken.append((made.name, begin))
        return True

    tables = NewTables(take)
    tables.see(7, None, table("T"), 100, [made_by("CREATE TABLE t (id NUMBER)")])
    tables.see_leaving(7)
    tables.see_renamed(table("T"), table("U"), 101)
    tables.see(7, table("U"), None, 102)
    tables.see_renamed(table("V"), table("T"), 103)  # another table has the name then
    tables.watch_for(lambda owner, _: owner == "APP")
    assert taken == [
        ("T", Begin(100, is_past=True)),
        ("U", Begin(101, is_renamed=True, is_past=True)),
    ]
