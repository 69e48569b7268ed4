"""EXCHANGE PARTITION of the source, through the whole appliance into PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.errors import OlrPgError
from olr_pg.simulator.sessions.sys_dictionary import sys_cell
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource
from tests.replicator.test_ddl_pipeline import rows_of, run_once
from tests.replicator.test_renamed_tables import stopped_of

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.simulator.model.tables import SimTable

pytestmark = pytest.mark.usefixtures("one_session")


def exchanging(folder: Path) -> tuple[DdlSource, SimTable]:
    """P's first partition is exchanged with X, in between changes of both."""
    source = DdlSource(folder / "s")
    table = source.create("P", {"ID": NUMBER, "NAME": TEXT}, partitions=2)
    other = source.create("X", {"ID": NUMBER, "NAME": TEXT})
    source.take_snapshot()
    rows = {number: source.insert("P", number, "p") for number in range(1, 60)}
    first = [n for n, row in rows.items() if row.block.obj == table.segments[0].obj]
    assert 2 < len(first) < 58
    came = [source.insert("X", number, "x") for number in first[:2]]
    assert source.session.ddl.exchange_with(table, 0, other)
    source.update(came[0], {1: "now p"})
    source.update(rows[first[0]], {1: "now x"})
    source.insert("P", first[2], "new p")
    source.insert("X", 100, "new x")
    source.finish()
    assert [row["ID"] for row in source.rows("X")] == [*first, 100]
    return source, table


def make_target(database: str, table: SimTable) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("CREATE SCHEMA shop")
        connection.execute(
            "CREATE TABLE shop.p (id numeric PRIMARY KEY, name text) PARTITION BY LIST (id)"
        )
        for segment in table.segments:
            name = f"p_sys_p{segment.obj}"
            of_part = [n for n in range(1, 60) if table.segment_of([sys_cell(n)]) is segment]
            listed = ", ".join(map(str, of_part))
            connection.execute(
                f"CREATE TABLE shop.{name} PARTITION OF shop.p FOR VALUES IN ({listed})"
            )
        connection.execute("CREATE TABLE shop.x (id numeric PRIMARY KEY, name text)")


def test_the_partition_and_the_table_of_the_target_are_exchanged(
    tmp_path: Path, postgres_database: str
) -> None:
    source, table = exchanging(tmp_path)
    make_target(postgres_database, table)
    for _ in range(2):
        run_once(source, postgres_database, ["P", "X"])
        with psycopg.connect(postgres_database) as connection:
            for name in ("P", "X"):
                assert rows_of(connection, name) == source.rows(name)
            assert stopped_of(connection) == []


def test_a_table_whose_rows_all_came_by_the_exchange_is_not_replaced_by_an_empty_one(
    tmp_path: Path, postgres_database: str
) -> None:
    source = DdlSource(tmp_path / "s")
    table = source.create("P", {"ID": NUMBER, "NAME": TEXT}, partitions=2)
    other = source.create("X", {"ID": NUMBER, "NAME": TEXT})
    source.take_snapshot()
    for number in range(1, 60):
        source.insert("P", number, "p")
    assert source.session.ddl.exchange_with(table, 0, other)
    source.finish()
    make_target(postgres_database, table)
    for _ in range(2):
        run_once(source, postgres_database, ["P", "X"])
    with psycopg.connect(postgres_database) as connection:
        assert rows_of(connection, "X") == source.rows("X") != []
        connection.execute("DROP TABLE shop.x; CREATE TABLE shop.x (id numeric, name text)")
    with pytest.raises(OlrPgError, match="5046"):
        run_once(source, postgres_database, ["P", "X"])


def test_without_the_partition_in_the_target_both_stop(
    tmp_path: Path, postgres_database: str
) -> None:
    source, _ = exchanging(tmp_path)
    with pytest.raises(OlrPgError, match="3073"):
        run_once(source, postgres_database, ["P", "X"])
    with psycopg.connect(postgres_database) as connection:
        assert stopped_of(connection) == ["SHOP.P", "SHOP.X"]
        assert {row["NAME"] for row in rows_of(connection, "X")} == {"x"}
        messages = connection.execute(
            "SELECT message FROM olr_pg.error ORDER BY source_table"
        ).fetchall()
        assert "shop.p has no partition for exactly these rows" in messages[0][0]
        assert "SHOP.P is stopped or paused at an earlier SCN" in messages[1][0]


def test_a_table_whose_other_one_is_not_replicated_stops(
    tmp_path: Path, postgres_database: str
) -> None:
    source, table = exchanging(tmp_path)
    make_target(postgres_database, table)
    with pytest.raises(OlrPgError, match="3073"):
        run_once(source, postgres_database, ["P"])
    with psycopg.connect(postgres_database) as connection:
        ((message,),) = connection.execute("SELECT message FROM olr_pg.error").fetchall()
        assert "was exchanged with table SHOP.X, which is not replicated" in message
        assert {row["NAME"] for row in rows_of(connection, "P")} == {"p"}


def test_a_policy_stops_both_until_they_are_exchanged_by_hand(
    tmp_path: Path, postgres_database: str
) -> None:
    source, table = exchanging(tmp_path)
    make_target(postgres_database, table)
    with pytest.raises(OlrPgError, match="3073"):
        run_once(source, postgres_database, ["P", "X"], ddl={"exchange-partition": "stop"})
    name = f"p_sys_p{table.segments[0].obj}"
    with psycopg.connect(postgres_database) as connection:
        ((bound,),) = connection.execute(
            "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = %s", [name]
        ).fetchall()
        connection.execute(f"""
            UPDATE olr_pg.ledger SET target_oid = NULL WHERE source_table = 'SHOP.X';
            ALTER TABLE shop.p DETACH PARTITION shop.{name};
            ALTER TABLE shop.{name} RENAME TO y; ALTER TABLE shop.x RENAME TO {name};
            ALTER TABLE shop.y RENAME TO x;
            ALTER TABLE shop.p ATTACH PARTITION shop.{name} {bound};
            UPDATE olr_pg.error SET resolution = 'skipped' WHERE source_table = 'SHOP.P'
        """)
    run_once(source, postgres_database, ["P", "X"], ddl={"exchange-partition": "stop"})
    with psycopg.connect(postgres_database) as connection:
        for one in ("P", "X"):
            assert rows_of(connection, one) == source.rows(one)
        assert stopped_of(connection) == []
