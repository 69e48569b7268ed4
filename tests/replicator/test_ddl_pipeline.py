"""DDL of the source through the whole appliance into PostgreSQL."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.appliance.appliance import run_appliance
from olr_pg.applier.stopped.error_table import skip_error, skip_transaction
from olr_pg.config.reading import load_config
from olr_pg.decoding.new_tables import CREATE_TABLE
from olr_pg.dictionary.change_history import FILE_NAME
from olr_pg.errors import Code, OlrPgError
from olr_pg.replicator.decode_once import decode_logs
from olr_pg.schema.followed_steps import step_sql
from olr_pg.simulator.model.column_types import number_type, varchar
from olr_pg.simulator.model.tables import SimVirtual
from tests.advice import followed
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource, source_without_sys_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def run_once(
    source: DdlSource,
    database: str,
    tables: Sequence[str],
    left_out: Mapping[str, Any] | None = None,
    **apply: Any,
) -> None:
    folder = source.directory
    document = {
        "context": {"data": str(folder / "data")},
        "source": {
            "kind": "offline",
            "dictionary": str(folder / "dictionary.json"),
            "logs": str(folder / "logs"),
        },
        "filter": left_out or {},
        "target": {"address": "127.0.0.1:0"},
        "apply": {
            "connect-string": database,
            "tables": [f"SHOP.{name}" for name in tables],
            "create-tables": True,
            **apply,
        },
        "spark": {"master": "local[2,2]"},
    }
    path = folder / "config.json"
    path.write_text(json.dumps(document), "utf-8")
    assert run_appliance(load_config(path), once=True, apply=True, translate=step_sql) == 0


def rows_of(
    connection: psycopg.Connection[Any], name: str, key: str = "id"
) -> list[dict[str, Any]]:
    cursor = connection.execute(f'SELECT * FROM shop."{name.lower()}" ORDER BY {key}'.encode())
    assert cursor.description is not None
    names = [column.name.upper() for column in cursor.description]
    return [
        {name: int(value) if isinstance(value, (int,)) or hasattr(value, "as_tuple") else value
         for name, value in zip(names, row, strict=True)}
        for row in cursor.fetchall()
    ]  # fmt: skip


def errors_of(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    return connection.execute(
        "SELECT source_table, operation, code, resolution, attempts FROM olr_pg.error"
    ).fetchall()


@pytest.mark.usefixtures("one_session")
def test_columns_and_truncation_follow_and_another_table_stops_until_it_is_let_go(
    tmp_path: Path, postgres_database: str
) -> None:
    source = DdlSource(tmp_path / "s", log_blocks=30)
    for name in ("A", "B", "C"):
        source.create(name, {"ID": NUMBER, "NAME": TEXT})
    source.take_snapshot()
    for number in range(5):
        for name in ("A", "B", "C"):
            source.insert(name, number, f"first {number}")
    source.add_column("A", "EXTRA", NUMBER)
    source.insert("A", 100, "wide", 1)
    source.truncate("B")
    source.insert("B", 200, "after")
    source.rename_column("C", 1, "TITLE")
    source.insert("C", 300, "renamed")
    source.add_column("B", "MORE", TEXT)
    source.insert("B", 201, "wider", "x")
    source.finish()
    assert len(list((source.directory / "logs").iterdir())) > 2
    tables = ("A", "B", "C")
    for attempt in (1, 2):
        with pytest.raises(OlrPgError) as caught:
            run_once(source, postgres_database, tables, ddl={"rename-column": "stop"})
        assert caught.value.code == 5010
        assert "OLR-03072" in caught.value.detail
        with psycopg.connect(postgres_database) as connection:
            assert rows_of(connection, "A") == source.rows("A")
            assert rows_of(connection, "B") == source.rows("B")
            assert [row["ID"] for row in rows_of(connection, "C")] == list(range(5))
            assert errors_of(connection) == [("SHOP.C", "ddl", 3072, "stopped", attempt)]
            stopped = connection.execute(
                "SELECT source_table FROM olr_pg.ledger WHERE stopped"
            ).fetchall()
            assert stopped == [("SHOP.C",)]
    with psycopg.connect(postgres_database) as connection:
        connection.execute("ALTER TABLE shop.c RENAME COLUMN name TO title")
        connection.execute("UPDATE olr_pg.error SET resolution = 'skipped'")
    run_once(source, postgres_database, tables)
    with psycopg.connect(postgres_database) as connection:
        for name in tables:
            assert rows_of(connection, name) == source.rows(name)


@pytest.mark.usefixtures("one_session")
def test_what_becomes_of_columns_is_followed_between_the_changes(
    tmp_path: Path, postgres_database: str
) -> None:
    source = DdlSource(tmp_path / "s", log_blocks=30)
    source.create(
        "A", {"ID": number_type(4, 0), "NAME": varchar(10), "PRICE": NUMBER, "KIND": TEXT}
    )
    source.take_snapshot()
    first = source.insert("A", 1, "one", 10, "x")
    source.insert("A", 2, "two", None, "y")
    source.add_column("A", "STATE", varchar(20), "it's new")
    source.insert("A", 3, "three", 30, "z", "used")
    source.update(first, {4: "changed"})
    source.rename_column("A", 1, "TITLE")
    source.update(first, {1: "uno"})
    source.modify_column("A", 1, varchar(60))
    source.update(first, {1: "a name of more than ten letters"})
    source.modify_column("A", 0, number_type(9, 0))
    source.insert("A", 123_456_789, "wide", 1, "k", "s")
    source.set_nullable("A", 3, nullable=False)
    source.rename_column("A", 0, "NUMBER_OF")
    second = source.insert("A", 5, "five", 50, "v", "s")
    source.set_unused("A", 2)
    source.insert("A", 6, "six", None, "w", "t")
    source.update(second, {1: "fünf"})
    source.set_nullable("A", 3, nullable=True)
    source.update(second, {3: None})
    source.drop_column("A", 3)  # and the unused one before it
    source.insert("A", 7, "seven", "u")
    source.update(second, {2: "behind it"})
    source.add_column("A", "PRICE", TEXT)  # the name is free again
    source.insert("A", 8, "eight", "t", "cheap")
    source.finish()
    run_once(source, postgres_database, ["A"])
    with psycopg.connect(postgres_database) as connection:
        rows = connection.execute("SELECT to_jsonb(a) FROM shop.a ORDER BY number_of").fetchall()
        assert [{k.upper(): v for k, v in row.items()} for (row,) in rows] == source.rows("A")
        assert errors_of(connection) == []
        types = connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute"
            " WHERE attrelid = 'shop.a'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY 1"
        ).fetchall()
    assert types == [
        ("number_of", "integer", True),
        ("price", "character varying(128)", False),
        ("state", "character varying(20)", True),
        ("title", "character varying(60)", False),
    ]


@pytest.mark.usefixtures("one_session")
def test_rows_of_a_partition_go_where_the_target_has_it(
    tmp_path: Path, postgres_database: str
) -> None:
    source = DdlSource(tmp_path / "s")
    table = source.create("P", {"ID": NUMBER}, partitions=2)
    other = source.create("Q", {"ID": NUMBER}, partitions=2)
    source.take_snapshot()
    parts = dict[int, list[int]]()
    for number in range(1, 60):
        row = source.insert("P", number)
        parts.setdefault(table.segments.index(table.segment_of(row.cells)), []).append(number)
        source.insert("Q", number)
    assert sorted(parts) == [0, 1]
    names = [f"p_sys_p{segment.obj}" for segment in table.segments]
    assert source.session.ddl.truncate_partition(table, 0)
    source.insert("P", 100)
    assert source.session.ddl.drop_partition(table, 1)
    source.insert("P", 101)
    assert source.session.ddl.drop_partition(other, 0)
    source.finish()
    with psycopg.connect(postgres_database) as connection:
        connection.execute("CREATE SCHEMA shop")
        connection.execute("CREATE TABLE shop.p (id numeric PRIMARY KEY) PARTITION BY LIST (id)")
        for number, numbers in parts.items():
            listed = ", ".join(map(str, numbers))
            connection.execute(
                f"CREATE TABLE shop.{names[number]} PARTITION OF shop.p FOR VALUES IN ({listed})"
            )
        connection.execute("CREATE TABLE shop.p_rest PARTITION OF shop.p DEFAULT")
    with pytest.raises(OlrPgError, match=r"SHOP\.Q, because of OLR-03074"):
        run_once(source, postgres_database, ("P", "Q"))
    run_once(source, postgres_database, ("P", "Q"), None, ddl={"drop-partition": "ignore"})
    with psycopg.connect(postgres_database) as connection:
        assert rows_of(connection, "P") == source.rows("P")
        assert len(rows_of(connection, "Q")) == 59
        assert connection.execute("SELECT to_regclass('shop.p_rest')").fetchone() != (None,)


@pytest.mark.usefixtures("one_session")
def test_partitions_that_the_target_lacks_are_emptied_by_hand(
    tmp_path: Path, postgres_database: str
) -> None:
    source = DdlSource(tmp_path / "s")
    p, q = (source.create(name, {"ID": NUMBER}, partitions=2) for name in "PQ")
    source.take_snapshot()
    for number in range(1, 30):
        for name in "PQ":
            source.insert(name, number)
    assert source.session.ddl.truncate_partition(p, 0)
    assert source.session.ddl.drop_partition(q, 1)
    for name in "PQ":
        source.insert(name, 100)
    source.finish()
    with pytest.raises(OlrPgError, match="and 1 more"):
        run_once(source, postgres_database, "PQ")
    skip = "resume the table: `olr-pg errors skip`"
    error = OlrPgError(Code.ROWS_CHANGED_BY_DDL, "")
    followed(error, Code.ROWS_CHANGED_BY_DDL, "make the target table equal to the source", skip)
    error = OlrPgError(Code.PARTITION_DROPPED, "")
    followed(error, Code.PARTITION_DROPPED, "delete them there", "Then", skip)
    with psycopg.connect(postgres_database) as connection:
        assert [len(rows_of(connection, name)) for name in "PQ"] == [29, 29]
        for name in "PQ":
            kept = [row["ID"] for row in source.rows(name)]
            connection.execute(f"DELETE FROM shop.{name} WHERE id <> ALL(%s)", [kept])
        assert {error[2] for error in errors_of(connection)} == {3073, 3074}
        for (number,) in connection.execute("SELECT id FROM olr_pg.error").fetchall():
            skip_error(connection, "olr_pg", number)
    run_once(source, postgres_database, "PQ")
    with psycopg.connect(postgres_database) as connection:
        for name in "PQ":
            assert rows_of(connection, name) == source.rows(name)


@pytest.mark.usefixtures("one_session")
def test_what_is_left_out_reaches_nothing(tmp_path: Path, postgres_database: str) -> None:
    source = DdlSource(tmp_path / "s")
    for name in ("A", "B"):
        source.create(name, {"ID": NUMBER, "NAME": TEXT})
    source.take_snapshot()
    row = source.insert("A", 1, "one")
    source.insert("B", 1, "one")
    source.update(row, {1: "eins"})
    source.add_column("A", "EXTRA", NUMBER)
    source.insert("A", 2, "two", 22)
    source.finish()
    left_out = {
        "tables": {"exclude": ["*.B"]},
        "columns": {"SHOP.A": ["EXTRA"]},
        "operations": {"shop.*": ["update"]},
    }
    run_once(source, postgres_database, ("A", "B"), left_out)
    with psycopg.connect(postgres_database) as connection:
        assert rows_of(connection, "A") == [{"ID": 1, "NAME": "one"}, {"ID": 2, "NAME": "two"}]
        assert connection.execute("SELECT to_regclass('shop.b')").fetchone() == (None,)


@pytest.mark.usefixtures("one_session")
def test_a_restart_behind_ddl_knows_it_from_the_recorded_changes(
    tmp_path: Path, postgres_database: str
) -> None:
    source = DdlSource(tmp_path / "s")
    source.create("A", {"ID": NUMBER})
    source.take_snapshot()
    source.insert("A", 1)
    source.add_column("A", "EXTRA", NUMBER)
    source.insert("A", 2, 22)
    source.truncate("A")
    source.threads[0].switch()
    logs = source.directory / "logs"
    run_once(source, postgres_database, ["A"])
    assert (source.directory / "data" / FILE_NAME).read_bytes().count(b"\n") == 3
    with psycopg.connect(postgres_database) as connection:
        assert rows_of(connection, "A") == []
    # The log with the DDL is gone: only the record of it tells what EXTRA is.
    for path in logs.iterdir():
        path.unlink()
    source.insert("A", 3, 33)
    source.finish()
    record = source.directory / "data" / FILE_NAME
    whole = record.read_bytes()
    lines = whole.splitlines(keepends=True)
    for older in (b"", lines[0], b"".join(lines[:2])):
        record.write_bytes(older)
        if not older:
            record.unlink()
        with pytest.raises(OlrPgError) as caught:
            run_once(source, postgres_database, ["A"])
        words = "from the same copy as `checkpoint.json`"
        followed(caught.value, Code.DICTIONARY_CHANGES_MISSING, words)
    record.write_bytes(whole)
    run_once(source, postgres_database, ["A"])
    with psycopg.connect(postgres_database) as connection:
        assert rows_of(connection, "A") == [{"ID": 3, "EXTRA": 33}]


@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("is_known", [True, False])
def test_a_start_after_the_dictionary_warns_of_ddl_that_is_not_read(
    tmp_path: Path, postgres_database: str, is_known: bool
) -> None:
    """An earlier run has recorded it, or nobody. Somebody has removed the checkpoint."""
    source = DdlSource(tmp_path / "s")
    source.create("A", {"ID": NUMBER})
    source.take_snapshot()
    source.insert("A", 1)
    start = source.instance.scn
    source.insert("A", 2)
    source.threads[0].switch()
    if is_known:
        run_once(source, postgres_database, ["A"])
        (source.directory / "data" / "checkpoint.json").unlink()
    source.insert("A", 3)
    source.finish()
    with capture_logs() as logged:
        run_once(source, postgres_database, ["A"], None, **{"start-scn": start})
    with psycopg.connect(postgres_database) as connection:
        assert [row["ID"] for row in rows_of(connection, "A")] == [*([1] if is_known else []), 2, 3]
    warned = [line for line in logged if "the start SCN is after" in line["event"]]
    assert [line["start_scn"] for line in warned] == ([] if is_known else [start])


@pytest.mark.usefixtures("one_session")
def test_truncation_can_be_left_to_people(tmp_path: Path, postgres_database: str) -> None:
    source = DdlSource(tmp_path / "s")
    source.create("A", {"ID": NUMBER})
    source.take_snapshot()
    source.insert("A", 1)
    source.truncate("A")
    source.insert("A", 2)
    source.finish()
    with pytest.raises(OlrPgError) as caught:
        run_once(source, postgres_database, ["A"], None, ddl={"truncate": "stop"})
    assert "OLR-05070" in caught.value.detail
    with psycopg.connect(postgres_database) as connection:
        assert [row["ID"] for row in rows_of(connection, "A")] == [1]
    run_once(source, postgres_database, ["A"], None, ddl={"truncate": "ignore"})
    with psycopg.connect(postgres_database) as connection:
        assert [row["ID"] for row in rows_of(connection, "A")] == [1, 2]


@pytest.mark.usefixtures("one_session")
def test_without_sys_rows_only_the_changed_table_stops(
    tmp_path: Path, postgres_database: str
) -> None:
    source = source_without_sys_rows(tmp_path / "s")
    with pytest.raises(OlrPgError) as caught:
        run_once(source, postgres_database, ["A", "B"])
    assert caught.value.code == 5010
    assert "OLR-02013" in caught.value.detail
    with psycopg.connect(postgres_database) as connection:
        assert rows_of(connection, "A") == [{"ID": 1}]
        assert rows_of(connection, "B") == [{"ID": 1}]
        assert errors_of(connection) == [("SHOP.A", "ddl", 2013, "stopped", 1)]
        found = connection.execute("SELECT subscription, id FROM olr_pg.error").fetchone()
        assert found is not None
        for skip in (skip_error, skip_transaction):
            # It would look as if A were replicated, but its later changes do not come.
            with pytest.raises(OlrPgError, match="are not delivered") as refused:
                skip(connection, *found)
            assert refused.value.code == 5143
            assert "initial-load --anew" in str(refused.value.action)


@pytest.mark.usefixtures("one_session")
def test_a_table_that_is_dropped_and_created_again_is_the_new_one(
    tmp_path: Path, postgres_database: str
) -> None:
    source = DdlSource(tmp_path / "s", log_blocks=30)
    source.create("A", {"ID": NUMBER, "NAME": TEXT})
    source.create("KEPT", {"ID": NUMBER})
    source.take_snapshot()
    source.insert("A", 1, "old")
    source.insert("KEPT", 1)
    source.drop("A")
    source.insert("KEPT", 2)
    source.create("A", {"ID": NUMBER, "NAME": varchar(7), "MORE": TEXT})
    source.statement("A", CREATE_TABLE, "CREATE TABLE a (id NUMBER PRIMARY KEY, …)")
    source.session.commit()
    row = source.insert("A", 1, "new", "first")
    source.update(row, {2: "second"})
    source.drop("A")
    source.create("A", {"NUMBER_OF": NUMBER, "ID": NUMBER})
    source.statement("A", CREATE_TABLE, "CREATE TABLE a (number_of NUMBER PRIMARY KEY, …)")
    source.session.commit()
    source.update(source.insert("A", 1, 1), {1: 2})
    source.rename_column("A", 1, "OTHER")
    source.insert("A", 2, None)
    source.finish()
    tables = ("A", "KEPT")
    with pytest.raises(OlrPgError, match="3071"):
        run_once(source, postgres_database, tables)
    with psycopg.connect(postgres_database) as connection:
        assert rows_of(connection, "A") == [{"ID": 1, "NAME": "old"}]
        assert rows_of(connection, "KEPT") == source.rows("KEPT")
    for attempt in range(3):
        if attempt == 2:  # all is read once more, by what was noted of the dictionary
            with psycopg.connect(postgres_database) as connection:
                connection.execute("DROP SCHEMA shop, olr_pg CASCADE")
            history = source.directory / "data" / FILE_NAME
            noted = history.read_bytes()
            shutil.rmtree(history.parent)
            history.parent.mkdir()
            history.write_bytes(noted)
        run_once(source, postgres_database, tables, ddl={"drop-table": "follow"})
        with psycopg.connect(postgres_database) as connection:
            assert rows_of(connection, "A", "number_of") == source.rows("A")
            assert source.rows("A")[0] == {"NUMBER_OF": 1, "OTHER": 2}
            key = connection.execute(
                "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
                " WHERE conrelid = 'shop.a'::regclass AND contype = 'p'"
            )
            assert key.fetchall() == [("PRIMARY KEY (number_of)",)]


@pytest.mark.usefixtures("one_session")
def test_columns_that_oracle_computes_are_followed_and_numbered_rows_stop_their_table(
    tmp_path: Path, postgres_database: str
) -> None:
    source = DdlSource(tmp_path / "s", log_blocks=30)
    a = source.create("A", {"ID": number_type(4, 0), "NAME": varchar(10)})
    source.create("B", {"ID": NUMBER, "NAME": TEXT})
    snapshot = source.take_snapshot()
    computed = source.session.computed
    # NEXT has INTCOL# 3 and no SEGCOL#, so the columns that come later have other numbers of both.
    number_after = SimVirtual("NEXT", NUMBER, 0, "plus one")
    assert computed.add_virtual(a, number_after)
    source.add_column("A", "STATE", varchar(20), "new")
    assert computed.add_numbered(a, "NO", identity=True)
    assert source.session.ddl.comment(a, 2, "its state")
    first = source.insert("A", 1, "one", "x", 7)
    assert computed.add_virtual(a, SimVirtual("LABEL", TEXT, 1, "with x"))
    assert computed.alter_virtual(a, 3, replace(number_after, name="FOLLOWING"))
    assert computed.add_virtual(a, SimVirtual("OWN", NUMBER, 0, "own function"))
    assert computed.alter_virtual(a, 3, SimVirtual("FOLLOWING", NUMBER, 0, "zero for null"))
    assert computed.drop_virtual(a, 7, renumbers=True)  # OWN, the last one
    assert computed.drop_virtual(a, 3, renumbers=True)  # FOLLOWING
    source.add_column("A", "MORE", NUMBER, 4)
    assert computed.add_virtual(a, replace(number_after, name="THIRD"))
    source.add_column("A", "LAST", NUMBER, 6)
    assert computed.drop_virtual(a, 7, renumbers=False)  # THIRD
    source.insert("A", 2, None, "y", 8, 9, 10)
    source.update(first, {4: 5})
    assert computed.drop_identity(a, 3)
    source.insert("B", 1, "one")
    source.insert("B", 2, "two")
    assert computed.add_numbered(source.tables["B"], "NO", identity=True)
    source.insert("B", 3, "three", 3)
    source.finish()
    with pytest.raises(OlrPgError, match="OLR-03072"):
        run_once(source, postgres_database, ("A", "B"))
    labels = {1: "onex", 2: "x"}
    with psycopg.connect(postgres_database) as connection:
        expected = [{**row, "LABEL": labels[row["ID"]]} for row in source.rows("A")]
        assert rows_of(connection, "A") == expected
        comments = "SELECT col_description('shop.a'::regclass, attnum) FROM pg_attribute"
        comments += " WHERE attrelid = 'shop.a'::regclass AND attname = 'state'"
        assert connection.execute(comments.encode()).fetchone() == ("its state",)
        assert [row["ID"] for row in rows_of(connection, "B")] == [1, 2]
        assert errors_of(connection) == [("SHOP.B", "ddl", 3072, "stopped", 1)]
    with pytest.raises(OlrPgError, match="which the source wrote into each existing row"):
        for _ in decode_logs(snapshot, [str(source.directory / "logs")]):
            pass
