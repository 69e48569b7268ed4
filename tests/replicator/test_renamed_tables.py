"""Tables of the source that are renamed, through the whole appliance into PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.decoding.new_tables import CREATE_TABLE
from olr_pg.errors import Code, OlrPgError
from olr_pg.load import copy_task
from olr_pg.simulator.model.column_types import varchar
from tests.advice import followed
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.test_ddl_pipeline import rows_of, run_once
from tests.replicator.test_late_redo import command, export_rows

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("one_session")

COLUMNS = {"ID": NUMBER, "NAME": TEXT}


def tables_of(connection: psycopg.Connection[Any]) -> list[str]:
    found = connection.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'shop'::regnamespace AND relkind = 'r'"
        " ORDER BY 1"
    )
    return [name for (name,) in found]


def stopped_of(connection: psycopg.Connection[Any]) -> list[str]:
    found = connection.execute("SELECT source_table FROM olr_pg.ledger WHERE stopped ORDER BY 1")
    return [name for (name,) in found]


def check(source: DdlSource, database: str, *names: str, key: str = "id") -> None:
    with psycopg.connect(database) as connection:
        assert tables_of(connection) == sorted(name.lower() for name in names)
        for name in names:
            assert rows_of(connection, name, key) == source.rows(name)
        assert stopped_of(connection) == []


def test_a_rename_is_followed_between_the_changes(tmp_path: Path, postgres_database: str) -> None:
    source = DdlSource(tmp_path / "s", log_blocks=30)
    source.create("A", COLUMNS)
    source.create("KEPT", {"ID": NUMBER})
    source.take_snapshot()
    row = source.insert("A", 1, "old")
    source.insert("KEPT", 1)
    source.rename("A", "B")
    source.update(row, {1: "new"})
    source.insert("B", 2, "two")
    source.add_column("B", "MORE", TEXT)
    source.insert("B", 3, "three", "x")
    source.insert("KEPT", 2)
    source.finish()
    for _ in range(2):
        run_once(source, postgres_database, ["*"])
        check(source, postgres_database, "B", "KEPT")


def test_two_names_are_swapped_by_three_renames(tmp_path: Path, postgres_database: str) -> None:
    source = DdlSource(tmp_path / "s")
    source.create("A", COLUMNS)
    source.create("B", {"ID": NUMBER, "NAME": TEXT, "MORE": NUMBER})
    source.take_snapshot()
    source.insert("A", 1, "a")
    source.insert("B", 1, "b", 5)
    for number, (old, new) in enumerate((("A", "T"), ("B", "A"), ("T", "B")), 2):
        source.rename(old, new)
        source.insert(new, number, f"{old} to {new}", *([6] if old == "B" else []))
    source.insert("A", 9, "a", 7)
    source.insert("B", 9, "b")
    source.finish()
    for _ in range(2):
        run_once(source, postgres_database, ["*"])
        check(source, postgres_database, "A", "B")


def test_a_table_is_redefined_online(tmp_path: Path, postgres_database: str) -> None:
    """DBMS_REDEFINITION fills an interim table, and exchanges both names in one transaction."""
    source = DdlSource(tmp_path / "s", log_blocks=30)
    source.create("A", COLUMNS)
    source.create("KEPT", {"ID": NUMBER})
    source.take_snapshot()
    row = source.insert("A", 1, "a")
    source.insert("KEPT", 1)
    source.make("INTERIM", {"ID": NUMBER, "TITLE": varchar(40), "MORE": NUMBER})
    source.insert("INTERIM", 1, "a", 0)
    source.insert("A", 2, "b")
    source.insert("INTERIM", 2, "b", 0)
    source.swap("A", "INTERIM")
    source.insert("A", 3, "c", 5)
    source.update(row, {1: "old"})
    source.insert("KEPT", 2)
    source.drop("INTERIM")
    source.insert("A", 4, "d", 6)
    source.finish()
    for _ in range(2):
        run_once(source, postgres_database, ["*"], ddl={"drop-table": "follow"})
        check(source, postgres_database, "A", "KEPT", "INTERIM")


def test_a_table_that_is_redefined_by_a_table_with_unknown_rows_stops(
    tmp_path: Path, postgres_database: str
) -> None:
    source = DdlSource(tmp_path / "s", log_blocks=30)
    source.create("A", COLUMNS)
    source.create("KEPT", {"ID": NUMBER})
    source.take_snapshot()
    source.insert("A", 1, "a")
    source.create("INTERIM", COLUMNS)
    source.statement("INTERIM", CREATE_TABLE, "CREATE TABLE interim AS SELECT * FROM a")
    source.insert("INTERIM", 1, "b")
    source.swap("A", "INTERIM")
    source.insert("A", 2, "c")
    source.insert("INTERIM", 2, "d")
    source.insert("KEPT", 2)
    source.finish()
    for _ in range(2):
        with pytest.raises(OlrPgError, match="3071"):
            run_once(source, postgres_database, ["*"])
        with psycopg.connect(postgres_database) as connection:
            assert stopped_of(connection) == ["SHOP.A"]
            assert rows_of(connection, "A") == [{"ID": 1, "NAME": "a"}]
            assert rows_of(connection, "KEPT") == source.rows("KEPT")


def test_a_table_is_renamed_and_another_one_gets_its_name(
    tmp_path: Path, postgres_database: str
) -> None:
    source = DdlSource(tmp_path / "s")
    source.create("A", COLUMNS)
    source.take_snapshot()
    source.insert("A", 1, "old")
    source.rename("A", "A_OLD")
    source.insert("A_OLD", 2, "older")
    source.make("A", {"ID": NUMBER, "TITLE": varchar(5)})
    source.insert("A", 1, "new")
    source.drop("A_OLD")
    source.rename("A", "A_OLD")  # what a dropped table has left is empty, and makes room
    source.insert("A_OLD", 2, "newer")
    source.finish()
    for _ in range(2):
        run_once(source, postgres_database, ["*"], ddl={"drop-table": "follow"})
        check(source, postgres_database, "A_OLD")


def test_a_table_that_is_made_gets_names_and_one_of_them_gets_another_table(
    tmp_path: Path, postgres_database: str
) -> None:
    source = DdlSource(tmp_path / "s", log_blocks=30)
    source.create("KEPT", {"ID": NUMBER})
    source.take_snapshot()
    source.make("A", COLUMNS)
    source.insert("A", 1, "a")
    source.rename("A", "B")
    source.insert("B", 2, "b")
    source.drop("B")
    source.make("B", {"ID": NUMBER})
    source.insert("B", 1)
    source.rename("B", "C")
    source.rename("KEPT", "B")
    source.rename("C", "KEPT")  # a session that has C already is needed for it
    source.insert("KEPT", 2)
    source.insert("B", 3)
    source.finish()
    for _ in range(2):
        run_once(source, postgres_database, ["*"], ddl={"drop-table": "follow"})
        check(source, postgres_database, "B", "KEPT")


def test_a_table_that_leaves_the_list_stops_and_so_does_the_name_that_a_stranger_takes(
    tmp_path: Path, postgres_database: str
) -> None:
    source = DdlSource(tmp_path / "s")
    for name in ("A", "B", "X"):
        source.create(name, COLUMNS)
    source.take_snapshot()
    for name in ("A", "B", "X"):
        source.insert(name, 1, name)
    source.rename("A", "OUT")
    source.insert("OUT", 2, "a")
    source.rename("B", "C")
    source.insert("C", 2, "b")
    source.rename("X", "B")
    source.insert("B", 2, "x")
    source.finish()
    left_out = {"tables": {"exclude": ["*.OUT", "*.X"]}}
    with pytest.raises(OlrPgError, match="3077"):
        run_once(source, postgres_database, ["*"], left_out)
    with psycopg.connect(postgres_database) as connection:
        assert tables_of(connection) == ["a", "c"]
        assert rows_of(connection, "A") == [{"ID": 1, "NAME": "A"}]
        assert rows_of(connection, "C") == [{"ID": 1, "NAME": "B"}, {"ID": 2, "NAME": "b"}]
        messages = connection.execute(
            "SELECT source_table, split_part(message, ' (', 1) FROM olr_pg.error ORDER BY 1"
        )
        assert messages.fetchall() == [
            ("SHOP.A", "the table was renamed to SHOP.OUT, which is not replicated"),
            ("SHOP.B", "SHOP.X was renamed to it, whose rows are not replicated"),
        ]
        assert stopped_of(connection) == ["SHOP.A", "SHOP.B"]


def test_a_table_that_left_the_list_is_renamed_back_and_loaded_again(
    tmp_path: Path, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_task, "HERE_BYTES", 1 << 40)
    configure = "olr_pg.observability.logging_setup.configure_logging"
    monkeypatch.setattr(configure, lambda *_, **__: None)
    source = DdlSource(tmp_path / "s")
    source.create("A", COLUMNS)
    source.take_snapshot()
    source.insert("A", 1, "one")
    source.rename("A", "OUT")
    source.insert("OUT", 2, "two")
    source.threads[0].switch()
    left_out = {"tables": {"exclude": ["*.OUT"]}}
    with pytest.raises(OlrPgError, match="3077"):
        run_once(source, postgres_database, ["*"], left_out)
    error = OlrPgError(Code.TABLE_NOT_REPLICABLE_NOW, "")
    followed(error, Code.TABLE_NOT_REPLICABLE_NOW, "undo the change", "load the table again")
    source.rename("OUT", "A")
    source.insert("A", 3, "three")
    config = export_rows(source, tmp_path / "tables")
    source.insert("A", 4, "four")
    source.finish()
    command(config, "initial-load", "--anew", "--table", "SHOP.A")
    for _ in range(2):
        run_once(source, postgres_database, ["*"], left_out)
        check(source, postgres_database, "A")


def renamed_once(folder: Path) -> DdlSource:
    source = DdlSource(folder / "s")
    source.create("A", COLUMNS)
    source.create("KEPT", {"ID": NUMBER})
    source.take_snapshot()
    row = source.insert("A", 1, "old")
    source.rename("A", "B")
    source.update(row, {1: "new"})
    source.insert("KEPT", 1)
    source.finish()
    return source


def test_a_policy_stops_both_names_until_the_target_is_renamed_by_hand(
    tmp_path: Path, postgres_database: str
) -> None:
    source = renamed_once(tmp_path)
    for _ in range(2):
        with pytest.raises(OlrPgError, match="3071"):
            run_once(source, postgres_database, ["*"], ddl={"rename-table": "stop"})
        with psycopg.connect(postgres_database) as connection:
            assert rows_of(connection, "A") == [{"ID": 1, "NAME": "old"}]
            assert rows_of(connection, "KEPT") == source.rows("KEPT")
            assert stopped_of(connection) == ["SHOP.A", "SHOP.B"]
    with psycopg.connect(postgres_database) as connection:
        connection.execute("ALTER TABLE shop.a RENAME TO b")
        connection.execute(
            "UPDATE olr_pg.error SET resolution = 'skipped' WHERE source_table = 'SHOP.A'"
        )
    run_once(source, postgres_database, ["*"], ddl={"rename-table": "stop"})
    check(source, postgres_database, "B", "KEPT")


def test_a_policy_stops_two_tables_until_their_names_are_exchanged_by_hand(
    tmp_path: Path, postgres_database: str
) -> None:
    """With the UPDATE that the error advises: both names had rows of another table."""
    source = DdlSource(tmp_path / "s", log_blocks=30)
    for name in ("A", "B"):
        source.create(name, COLUMNS)
    source.take_snapshot()
    source.insert("A", 1, "a")
    source.insert("B", 1, "b")
    source.swap("A", "B")
    source.insert("A", 2, "c")
    source.insert("B", 2, "d")
    source.finish()
    with pytest.raises(OlrPgError, match="3071"):
        run_once(source, postgres_database, ["*"], ddl={"rename-table": "stop"})
    with psycopg.connect(postgres_database) as connection:
        assert stopped_of(connection) == ["SHOP.A", "SHOP.B"]
        connection.execute("""
            UPDATE olr_pg.ledger SET target_oid = NULL WHERE source_table IN ('SHOP.A', 'SHOP.B');
            ALTER TABLE shop.a RENAME TO y; ALTER TABLE shop.b RENAME TO a;
            ALTER TABLE shop.y RENAME TO b;
            UPDATE olr_pg.error SET resolution = 'skipped'
        """)
    for _ in range(2):
        run_once(source, postgres_database, ["*"], ddl={"rename-table": "stop"})
        check(source, postgres_database, "A", "B")


@pytest.mark.parametrize("change", ["DROP TABLE shop.b", "DROP TABLE shop.b; {}"])
def test_a_renamed_table_without_later_changes_is_not_replaced_by_an_empty_one(
    tmp_path: Path, postgres_database: str, change: str
) -> None:
    """Its rows came under the old name."""
    source = DdlSource(tmp_path / "s")
    source.create("A", COLUMNS)
    source.create("KEPT", {"ID": NUMBER})
    source.take_snapshot()
    source.insert("A", 1, "old")
    source.rename("A", "B")
    source.insert("KEPT", 1)
    source.finish()
    for _ in range(2):
        run_once(source, postgres_database, ["*"])
        check(source, postgres_database, "B", "KEPT")
    with psycopg.connect(postgres_database) as connection:
        again = "CREATE TABLE shop.b (id numeric PRIMARY KEY, name text)"
        connection.execute(change.format(again).encode())
    if "{}" in change:
        with pytest.raises(OlrPgError, match="5046"):
            run_once(source, postgres_database, ["*"])
    else:
        run_once(source, postgres_database, ["*"])
        with psycopg.connect(postgres_database) as connection:
            assert "b" not in tables_of(connection)


@pytest.mark.parametrize("in_the_way", ["TABLE", "VIEW"])
def test_what_has_the_new_name_in_the_target_stops_both_until_it_is_away(
    tmp_path: Path, postgres_database: str, in_the_way: str
) -> None:
    source = renamed_once(tmp_path)
    with psycopg.connect(postgres_database) as connection:
        connection.execute("CREATE SCHEMA shop")
        connection.execute(f"CREATE {in_the_way} shop.b AS SELECT 5 AS id")
    with pytest.raises(OlrPgError, match="5147"):
        run_once(source, postgres_database, ["*"], ddl={"drop-table": "follow"})
    error = OlrPgError(Code.TARGET_NAME_TAKEN, "")
    followed(error, Code.TARGET_NAME_TAKEN, "rename or drop that table")
    with psycopg.connect(postgres_database) as connection:
        assert rows_of(connection, "A") == [{"ID": 1, "NAME": "old"}]
        connection.execute(f"DROP {in_the_way} shop.b")
    run_once(source, postgres_database, ["*"])
    check(source, postgres_database, "B", "KEPT")


def test_what_is_noted_of_the_target_table_goes_with_it(
    tmp_path: Path, postgres_database: str
) -> None:
    source = DdlSource(tmp_path / "s")
    table = source.create("A", {"ID": NUMBER}, partitions=2)
    source.create("CHILD", {"ID": NUMBER})
    source.take_snapshot()
    source.insert("A", 1)
    source.insert("CHILD", 1)
    source.rename("A", "B")
    assert source.session.ddl.truncate_partition(table, 0)
    source.insert("B", 2)
    source.finish()
    first, second = (f"sys_p{segment.obj}" for segment in table.segments)
    with psycopg.connect(postgres_database) as connection:
        connection.execute("CREATE SCHEMA shop")
        connection.execute("CREATE TABLE shop.a (id numeric PRIMARY KEY) PARTITION BY LIST (id)")
        for value, part in enumerate((first, second), 1):
            connection.execute(
                f"CREATE TABLE shop.a_{part} PARTITION OF shop.a FOR VALUES IN ({value})"
            )
        connection.execute("CREATE TABLE shop.child (id numeric PRIMARY KEY REFERENCES shop.a)")
        connection.execute("CREATE TABLE shop.other (id numeric PRIMARY KEY)")
    run_once(source, postgres_database, ["*"], triggers="disable")
    with psycopg.connect(postgres_database) as connection:
        assert tables_of(connection) == [f"b_{first}", f"b_{second}", "child", "other"]
        assert [row["ID"] for row in rows_of(connection, "B")] == [2]
        noted = connection.execute("SELECT definition FROM olr_pg.set_aside").fetchall()
        assert noted == [("FOREIGN KEY (id) REFERENCES shop.b(id)",)]
