"""Tables that are altered in PostgreSQL while the way back runs, or before it reads their WAL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import oracledb
import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.fallback_run import prepare, resume_table, run
from olr_pg.fallback.value_report import report_values
from tests.advice import followed
from tests.fallback.both_sides import VALUES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fallback.both_sides import Both

ID: Final = "id NUMBER(10) PRIMARY KEY"
GENERATED: Final = "GENERATED ALWAYS AS (v * 2) STORED"


def test_rows_from_before_a_change_of_type_are_read_in_their_type(
    both: Callable[..., Both],
) -> None:
    """The catalogue has the new type when the way back reads them."""
    made = both(("retyped", f"{ID}, v NUMBER(12)", "(id int PRIMARY KEY, v int)"))
    made.sql("CREATE DOMAIN small AS numeric(5, 0)")
    for number, typed in enumerate(("bigint", "small", "text"), start=1):
        made.sql(f"INSERT INTO retyped VALUES ({number}, '{number}')")
        made.sql(f"ALTER TABLE retyped ALTER v TYPE {typed}")
    made.sql("INSERT INTO retyped VALUES (4, '4')")
    run(made.way, once=True)
    assert made.rows("retyped")[1] == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_rows_from_before_a_column_of_both_databases_leave_it_out(
    both: Callable[..., Both],
) -> None:
    made = both(("widened", f"{ID}, v NUMBER(5)", "(id int PRIMARY KEY, v int)"))
    made.sql("INSERT INTO widened VALUES (1, 1), (2, 2)", "UPDATE widened SET v = 3 WHERE id = 2")
    made.served.execute("ALTER TABLE widened ADD x NUMBER(5)")
    made.sql("ALTER TABLE widened ADD x int", "INSERT INTO widened VALUES (3, 3, 3)")
    made = made.known_again()
    run(made.way, once=True)
    assert made.same("widened")
    made.sql("ALTER TABLE widened DROP x", "INSERT INTO widened VALUES (4, 4)")
    assert "does not have the column any more" in str(made.stops()["APP.WIDENED"])


def test_a_column_that_was_added_and_dropped_again_stops_nothing_after_a_resume(
    both: Callable[..., Both],
) -> None:
    """Its values are gone in PostgreSQL, too."""
    made = both(("undone", f"{ID}, v NUMBER(5)", "(id int PRIMARY KEY, v int)"))
    made.sql("ALTER TABLE undone ADD own int", "INSERT INTO undone VALUES (1, 1, 1)")
    assert "Oracle has no such column" in str(made.stops()["APP.UNDONE"])
    made.sql("ALTER TABLE undone DROP own", "INSERT INTO undone VALUES (2, 2)")
    assert resume_table(made.way, "APP.UNDONE")
    run(made.way, once=True)
    assert made.same("undone")


def test_a_column_that_was_renamed_for_a_while_is_not_left_out(both: Callable[..., Both]) -> None:
    made = both(("renamed", f"{ID}, v NUMBER(5)", "(id int PRIMARY KEY, v int)"))
    made.sql("ALTER TABLE renamed RENAME v TO w", "INSERT INTO renamed VALUES (1, 1)")
    made.sql("ALTER TABLE renamed RENAME w TO v", "INSERT INTO renamed VALUES (2, 2)")
    assert "has w in its place" in str(made.stops()["APP.RENAMED"])
    assert made.rows("renamed")[1] == []


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        ("unnamed", "RENAME v TO w", "RENAME w TO v"),
        ("untyped", "ALTER v TYPE bytea USING NULL", "ALTER v TYPE int USING NULL"),
    ],
)
def test_rows_of_a_change_that_was_undone_are_skipped_until_the_table_continues(
    both: Callable[..., Both], name: str, wrong: str, right: str
) -> None:
    """As the errors advise: the WAL still has the rows."""
    made = both((name, f"{ID}, v NUMBER(5)", "(id int PRIMARY KEY, v int)"))
    table = f"APP.{name.upper()}"
    made.sql(f"ALTER TABLE {name} {wrong}", f"INSERT INTO {name} VALUES (1, NULL)")
    made.sql(f"INSERT INTO {name} VALUES (2, NULL)")
    made.sql(f"ALTER TABLE {name} {right}")
    made.sql(f"INSERT INTO {name} VALUES (3, 3)")
    (reason,) = made.stops().values()
    assert ("OLR-07351" in str(reason)) == (name == "untyped"), reason
    assert resume_table(made.way, table)
    for _ in range(2):
        assert list(made.stops()) == [table]
        assert resume_table(made.way, table, skip=True)
    error = OlrPgError(Code.COLUMN_NOT_FOR_ORACLE, "")
    skip = "run `olr-pg fallback skip --table OWNER.NAME` until it continues"
    followed(error, Code.COLUMN_NOT_FOR_ORACLE, skip, "and correct the rows in Oracle")
    run(made.way, once=True)
    assert made.rows(name)[1] == [(3, 3)]


def test_null_is_stored_after_a_resume_if_oracle_allows_it_by_then(
    both: Callable[..., Both],
) -> None:
    made = both(("strict", f"{ID}, v NUMBER(5) NOT NULL", "(id int PRIMARY KEY, v int)"))
    made.sql("INSERT INTO strict VALUES (1, NULL)")
    assert "the column is NOT NULL" in str(made.stops()["APP.STRICT"])
    made.served.execute("ALTER TABLE strict MODIFY v NULL")
    assert resume_table(made.way, "APP.STRICT")
    assert list(made.stops()) == ["APP.STRICT"], "this run has the dictionary of its start"
    made = made.known_again()
    assert resume_table(made.way, "APP.STRICT")
    run(made.way, once=True)
    assert made.same("strict")


def test_a_transaction_that_is_read_again_has_the_columns_of_its_first_row(
    both: Callable[..., Both],
) -> None:
    """A stopped table of the same transaction makes it read again; names and types are alike."""
    made = both(
        ("narrow", f"{ID}, v NUMBER(1)", "(id int PRIMARY KEY, v int)"),
        ("turned", f"{ID}, x NUMBER(5), y NUMBER(5)", "(id int PRIMARY KEY, x int, y int)"),
    )
    made.sql("INSERT INTO turned VALUES (1, 1, 2)")
    made.sql(
        "INSERT INTO turned VALUES (2, 1, 2)",
        "ALTER TABLE turned DROP x",
        "ALTER TABLE turned ADD x int",
        "INSERT INTO turned (id, x, y) VALUES (3, 1, 2)",
        "INSERT INTO narrow VALUES (1, 100)",
    )
    assert list(made.stops()) == ["APP.NARROW"]
    assert made.rows("turned", "id, x, y")[1] == [(1, 1, 2), (2, 1, 2), (3, 1, 2)]


def test_an_error_of_a_description_stops_its_own_table(both: Callable[..., Both]) -> None:
    made = both(
        ("first", f"{ID}, v NUMBER(5)", "(id int PRIMARY KEY, v int)"),
        ("second", f"{ID}, v NUMBER(5)", "(id int PRIMARY KEY, v int)"),
    )
    made.sql(
        "ALTER TABLE second ADD own int",
        "INSERT INTO first VALUES (1, 1)",
        "INSERT INTO second VALUES (1, 1)",
    )
    assert list(made.stops()) == ["APP.SECOND"]
    assert made.same("first")


def test_a_change_of_columns_is_logged_because_its_values_are_not_sent(
    both: Callable[..., Both],
) -> None:
    made = both(("rewritten", f"{ID}, v NUMBER(5)", "(id int PRIMARY KEY, v int)"))
    made.sql("INSERT INTO rewritten VALUES (1, 1)")
    made.sql("ALTER TABLE rewritten ALTER v TYPE bigint USING v * 10")
    made.sql("INSERT INTO rewritten VALUES (2, 2)")
    with capture_logs() as logged:
        run(made.way, once=True)
    assert [one["table"] for one in logged if one["log_level"] == "warning"] == ["APP.REWRITTEN"]
    assert made.rows("rewritten") == ([(1, 10), (2, 2)], [(1, 1), (2, 2)])


def test_an_update_whose_replica_identity_lacks_the_key_stops_its_table(
    both: Callable[..., Both],
) -> None:
    """It could be one that changes the key, and PostgreSQL does not send unchanged large values."""
    made = both(
        (
            "unlogged",
            f"{ID}, v VARCHAR2(9), big VARCHAR2(4000)",
            "(id int, v text PRIMARY KEY, big text)",
        )
    )
    made.sql(
        "ALTER TABLE unlogged ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO unlogged VALUES (1, 'a', repeat('A', 3000)), (2, 'b', repeat('B', 3000))",
    )
    run(made.way, once=True)
    made.sql("ALTER TABLE unlogged REPLICA IDENTITY DEFAULT", "UPDATE unlogged SET id = 3 - id")
    assert "7311" in str(made.stops()["APP.UNLOGGED"])
    error = OlrPgError(Code.FALLBACK_ROW_WITHOUT_KEY, "")
    identity, skip = "REPLICA IDENTITY FULL", "fallback skip --table OWNER.NAME` until the table"
    followed(error, Code.FALLBACK_ROW_WITHOUT_KEY, identity, skip, "correct the rows in Oracle")
    made.sql("ALTER TABLE unlogged REPLICA IDENTITY FULL", "UPDATE unlogged SET id = id + 10")
    assert resume_table(made.way, "APP.UNLOGGED", skip=True)
    made.served.execute("UPDATE unlogged SET id = 3 - id")
    run(made.way, once=True)
    assert made.same("unlogged")


def test_new_partitions_have_the_replica_identity_of_their_table(
    both: Callable[..., Both],
) -> None:
    """A partition does not inherit it; without one, applications cannot update its rows."""
    made = both(
        ("grown", f"{ID}, v VARCHAR2(9)", "(id int, v text) PARTITION BY RANGE (id)"),
        prepared=False,
    )
    made.sql("CREATE TABLE grown_1 PARTITION OF grown FOR VALUES FROM (0) TO (100)")
    prepare(made.way)
    made.sql(
        "CREATE TABLE grown_2 PARTITION OF grown FOR VALUES FROM (100) TO (200)"
        " PARTITION BY RANGE (id)",
        "CREATE TABLE grown_3 PARTITION OF grown_2 FOR VALUES FROM (100) TO (200)",
        "INSERT INTO grown VALUES (1, 'a'), (101, 'b'), (102, 'c')",
    )
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        made.sql("UPDATE grown SET v = 'd' WHERE id = 101")
    run(made.way, once=True)
    made.sql("UPDATE grown SET v = 'd' WHERE id = 101", "DELETE FROM grown WHERE id = 102")
    run(made.way, once=True)
    assert made.same("grown")


def test_a_new_partition_that_is_locked_is_named(both: Callable[..., Both]) -> None:
    made = both(("locked", f"{ID}, v VARCHAR2(9)", "(id int, v text) PARTITION BY RANGE (id)"))
    made.sql("CREATE TABLE locked_1 PARTITION OF locked FOR VALUES FROM (0) TO (100)")
    with psycopg.connect(made.database) as other, capture_logs() as logged:
        other.execute("LOCK TABLE app.locked_1")
        run(made.way, once=True)
    assert {one.get("statement") for one in logged if one["log_level"] == "warning"} == {
        'ALTER TABLE "app"."locked_1" REPLICA IDENTITY FULL'
    }


def test_a_column_that_postgresql_computes_is_refused_before_applications_write(
    both: Callable[..., Both],
) -> None:
    """PostgreSQL does not send its values, so Oracle's column would be NULL."""
    made = both(
        (
            "computed",
            f"{ID}, v NUMBER(5), g NUMBER(6)",
            f"(id int PRIMARY KEY, v int, g int {GENERATED}, own int {GENERATED})",
        ),
        prepared=False,
    )
    with psycopg.connect(made.database) as connection:
        (report,) = report_values(connection, made.way.tables, made.way.settings, VALUES)
    assert not report.is_ready
    assert [one.name for one in report.columns if "GENERATED" in one.error] == ["G"]
    with pytest.raises(OlrPgError) as refused:
        prepare(made.way)
    followed(refused.value, Code.FALLBACK_TABLE_UNFIT, "DROP EXPRESSION` in PostgreSQL")
    assert refused.value.where["column"] == "G"
    made.sql("ALTER TABLE computed ALTER g DROP EXPRESSION")
    prepare(made.way)
    made.sql("INSERT INTO computed VALUES (1, 1, 9)")
    run(made.way, once=True)
    assert made.same("computed", "id, v, g")
    made.sql(
        "ALTER TABLE computed DROP g",
        f"ALTER TABLE computed ADD g int {GENERATED}",
        "INSERT INTO computed VALUES (2, 1)",
    )
    assert "GENERATED" in str(made.stops()["APP.COMPUTED"])


def test_published_tables_that_exchange_their_names_stop(
    both: Callable[..., Both], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("olr_pg.fallback.fallback_run.PUBLICATION_SECONDS", 0.0)
    made = both(
        ("one_side", f"{ID}, v NUMBER(5)", "(id int PRIMARY KEY, v int)"),
        ("other_side", f"{ID}, v NUMBER(5)", "(id int PRIMARY KEY, v int)"),
    )
    made.sql("INSERT INTO one_side VALUES (1, 1)")

    def exchange(_: object) -> None:
        made.sql(
            "ALTER TABLE one_side RENAME TO third",
            "ALTER TABLE other_side RENAME TO one_side",
            "ALTER TABLE third RENAME TO other_side",
        )

    with pytest.raises(OlrPgError) as caught:
        run(made.way, once=True, progress=exchange)
    assert caught.value.code == Code.FALLBACK_TABLES_STOPPED
    assert str(caught.value).count("another table has the name") == 2


def test_a_constraint_that_is_checked_at_the_commit_stops_its_own_table(
    both: Callable[..., Both], monkeypatch: pytest.MonkeyPatch
) -> None:
    """COMMIT of a transaction with a DEFERRED constraint is refused, and names no table."""
    made = both(
        (
            "deferred",
            f"{ID}, v NUMBER(5), CONSTRAINT late UNIQUE (v)",
            "(id int PRIMARY KEY, v int)",
        ),
        ("beside", f"{ID}, v NUMBER(5)", "(id int PRIMARY KEY, v int)"),
    )
    commit = oracledb.Connection.commit

    def refusing(connection: oracledb.Connection) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM deferred WHERE v = 13")
            is_refused = cursor.fetchone() != (0,)
        if not is_refused:
            commit(connection)
            return
        connection.rollback()
        raise oracledb.IntegrityError(
            "ORA-02091: transaction rolled back\nORA-00001: unique constraint (APP.LATE) violated"
        )

    made.sql("INSERT INTO deferred VALUES (1, 13)", "INSERT INTO beside VALUES (1, 1)")
    monkeypatch.setattr(oracledb.Connection, "commit", refusing)
    assert list(made.stops()) == ["APP.DEFERRED"]
    assert made.same("beside")


@pytest.mark.parametrize(
    ("name", "renaming"),
    [
        ("moved", ["ADD w int", "DROP v", "RENAME w TO v"]),
        ("swapped", ["RENAME v TO u", "RENAME z TO v", "RENAME u TO z"]),
    ],
)
def test_a_column_that_has_the_name_of_another_one_is_not_taken_for_it(
    both: Callable[..., Both], name: str, renaming: list[str]
) -> None:
    """The names in the catalogue are those that Oracle's columns have."""
    made = both((name, f"{ID}, v NUMBER(5), z NUMBER(5)", "(id int PRIMARY KEY, v int, z int)"))
    made.sql(f"INSERT INTO {name} VALUES (1, 1, 2)")
    run(made.way, once=True)
    first, *others = (f"ALTER TABLE {name} {one}" for one in renaming)
    change = "w = v * 10" if "ADD" in first else "z = 4"
    made.sql(f"UPDATE {name} SET v = 3", first, f"UPDATE {name} SET {change}", *others)
    assert "was renamed after the row" in str(made.stops()[f"APP.{name.upper()}"])
    assert made.rows(name, "id, v, z")[1] == [(1, 1, 2)]


def test_a_column_that_is_dropped_and_added_again_stops_nothing(both: Callable[..., Both]) -> None:
    made = both(("again", f"{ID}, v NUMBER(5), z NUMBER(5)", "(id int PRIMARY KEY, v int, z int)"))
    made.sql(
        "ALTER TABLE again ADD own int",
        "INSERT INTO again VALUES (1, 1, 1, 1)",
        "ALTER TABLE again DROP own, DROP v",
        "ALTER TABLE again ADD v int",
        "INSERT INTO again (id, v, z) VALUES (2, 2, 2)",
    )
    run(made.way, once=True)
    assert made.rows("again", "id, v, z")[1] == [(1, 1, 1), (2, 2, 2)]
