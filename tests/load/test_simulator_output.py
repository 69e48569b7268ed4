"""What `olr-pg simulate` writes is loaded, replicated and compared as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.structure import Structure, UniqueKey
from olr_pg.errors import Code, OlrPgError
from olr_pg.load import sources
from olr_pg.load.target_structure import FAILED, StructureBuilder, raise_for_failures
from olr_pg.simulator.database_shape import DatabaseShape
from olr_pg.simulator.fields.redo_format import COMPATIBLE, RedoFormat
from olr_pg.simulator.simulation import simulate
from olr_pg.simulator.writer.instance import Pace
from tests.advice import followed
from tests.load.table_data import Source

if TYPE_CHECKING:
    from pathlib import Path

    from tests.load.conftest import Project

PACE = Pace(log_blocks=60)


def builder_of(project: Project, structure: Structure | None = None) -> StructureBuilder:
    config = project.config()
    snapshot = sources.read_dictionary(config)
    settings = sources.target_settings(config, snapshot, project.database)
    return StructureBuilder(
        settings, structure or snapshot.structure, sources.choose_tables(config, snapshot, ())
    )


def verified(project: Project) -> dict[str, int]:
    project.tables = project.source.folder / "final"
    results = project.verify()
    assert all(one.identical for one in results)
    assert all(one.scn >= one.applied_scn for one in results)
    return {one.table.source.full_name: one.target_rows for one in results}


def test_the_shop_with_its_structure(shop: Source, loads: Any) -> None:
    project = loads(shop)
    builder = builder_of(project)
    done = project.load(builder=builder)
    assert (
        {one.scn for one in done} == {one.start_scn for one in done} == {shop.summary.snapshot.scn}
    )
    assert sum(one.rows for one in done) > 80
    kinds = {part.kind: part.state for part in builder.parts}
    assert kinds == dict.fromkeys(("unique key", "index", "foreign key", "sequence"), "created")
    project.run()
    assert verified(project) == shop.summary.rows

    with psycopg.connect(project.database) as connection:
        parts = connection.execute(
            "SELECT contype::text, condeferrable, condeferred, convalidated, count(*)"
            " FROM pg_constraint"
            " WHERE connamespace = 'shop'::regnamespace AND contype IN ('p', 'u', 'f')"
            " GROUP BY 1, 2, 3, 4 ORDER BY 1"
        ).fetchall()
        assert parts == [
            *(("f", False, False, False, 7), ("p", False, False, True, 9)),
            ("u", True, False, True, 1),
        ]
        ahead = connection.execute(
            "SELECT nextval('shop.orders_seq') > max(order_id) FROM shop.orders"
        )
        # The snapshot is the one of the start; the cut-over brings the positions of the end.
        assert ahead.fetchone() == (False,)
        index = connection.execute("SELECT to_regclass('shop.orders_customer_id_ix') IS NOT NULL")
        assert index.fetchone() == (True,)
        for constraint, table in connection.execute(
            "SELECT conname, conrelid::regclass::text FROM pg_constraint WHERE contype = 'f'"
        ).fetchall():
            connection.execute(f"ALTER TABLE {table} VALIDATE CONSTRAINT {constraint}".encode())
    final = load_snapshot(str(shop.folder / "final" / "dictionary.json"))
    assert final.scn > shop.summary.snapshot.scn
    assert final.tables == shop.summary.snapshot.tables


def test_structure_that_is_there_stays_and_what_is_refused_is_said(
    shop: Source, loads: Any
) -> None:
    project = loads(shop)
    project.load(builder=builder_of(project))
    with psycopg.connect(project.database) as connection:
        connection.execute("DROP INDEX shop.orders_customer_id_ix")
        connection.execute("ALTER TABLE shop.stock DROP CONSTRAINT stock_warehouses_fk")
        connection.execute("ALTER TABLE shop.warehouses DROP CONSTRAINT warehouses_pkey CASCADE")
    again = builder_of(project)
    project.load(builder=again)
    states = {part.name: part.state for part in again.parts}
    assert states.pop("ORDERS_CUSTOMER_ID_IX") == "created"
    refused = {name for name, state in states.items() if state == FAILED}
    assert refused == {"STOCK_WAREHOUSES_FK", "DISTRICTS_WAREHOUSES_FK", "CUSTOMERS_WAREHOUSES_FK"}
    assert {state for name, state in states.items() if name not in refused} == {"present"}
    with pytest.raises(OlrPgError) as caught:
        raise_for_failures(again.parts)
    again_words = "Correct the problem", "start `olr-pg initial-load` again"
    followed(caught.value, Code.STRUCTURE_NOT_CREATED, *again_words)
    assert "and 2 more" in caught.value.detail
    with psycopg.connect(project.database) as connection:
        connection.execute("ALTER TABLE shop.warehouses ADD PRIMARY KEY (warehouse_id)")
    last = builder_of(project)
    project.load(builder=last)
    raise_for_failures(last.parts)
    assert {part.name for part in last.parts if part.state == "created"} == refused


def test_an_index_for_which_a_value_is_too_long_is_one_refusal_among_the_parts(
    shop: Source, loads: Any
) -> None:
    """PostgreSQL's 54000, which the driver puts among errors of the connection."""
    project = loads(shop)
    project.load(builder=builder_of(project))
    with psycopg.connect(project.database) as connection:
        connection.execute("DROP INDEX shop.orders_customer_id_ix")
        for key in ("orders_customers_fk", "orders_customer_uk"):
            connection.execute(f"ALTER TABLE shop.orders DROP CONSTRAINT {key}".encode())
        long = "(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 200) i)"
        connection.execute("ALTER TABLE shop.orders ALTER customer_id TYPE text")
        for column in ("status", "lines", "entered"):
            connection.execute(f"ALTER TABLE shop.orders ALTER {column} DROP NOT NULL".encode())
        new = f"INSERT INTO shop.orders (order_id, customer_id) VALUES (-1, {long})"
        connection.execute(new.encode())
        connection.execute("ALTER TABLE shop.stock DROP CONSTRAINT stock_warehouses_fk")
    again = builder_of(project)
    project.load(builder=again)
    parts = {part.name: part for part in again.parts}
    assert parts["ORDERS_CUSTOMER_ID_IX"].state == FAILED
    assert "exceeds btree version 4 maximum" in parts["ORDERS_CUSTOMER_ID_IX"].reason
    assert parts["STOCK_WAREHOUSES_FK"].state == "created"
    with pytest.raises(OlrPgError) as caught:
        raise_for_failures(again.parts)
    assert caught.value.code == 5120


def test_a_unique_key_for_which_a_value_is_too_long_keeps_no_row_out(
    shop: Source, loads: Any
) -> None:
    """A trigger makes the values long: the rows go in, and PostgreSQL refuses the key."""
    project = loads(shop)
    with psycopg.connect(project.database) as connection:
        connection.execute(
            b"CREATE SCHEMA shop; CREATE TABLE shop.customers (customer_id bigint PRIMARY KEY,"
            b" warehouse_id int, district_id int, name text, city text, notes text,"
            b" balance numeric, paid numeric, payments int, since timestamp);"
            b"CREATE FUNCTION shop.long() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            b" NEW.name := (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 2000) i)"
            b" || NEW.customer_id; RETURN NEW; END $$;"
            b"CREATE TRIGGER long BEFORE INSERT ON shop.customers FOR EACH ROW"
            b" EXECUTE FUNCTION shop.long();"
            b"ALTER TABLE shop.customers ENABLE ALWAYS TRIGGER long"
        )
    key = UniqueKey(owner="SHOP", table="CUSTOMERS", name="CUSTOMERS_NAME_UK", columns=("NAME",))
    builder = builder_of(project, Structure(unique_keys=(key,)))
    project.load(builder=builder)
    parts = {part.name: part for part in builder.parts}
    assert parts["CUSTOMERS_NAME_UK"].state == FAILED
    assert "index row" in parts["CUSTOMERS_NAME_UK"].reason
    with psycopg.connect(project.database) as connection:
        counted = connection.execute("SELECT min(length(name)) > 60000 FROM shop.customers")
        assert counted.fetchone() == (True,)


@pytest.mark.parametrize("workload", ["orders", "wide"])
def test_copies_of_redo(
    tmp_path: Path, loads: Any, monkeypatch: pytest.MonkeyPatch, workload: str
) -> None:
    """What is stamped leads from the first rows to the last."""
    size = 60_000
    monkeypatch.setattr("olr_pg.simulator.stamping.redo_copies.TEMPLATE_BYTES", size)
    monkeypatch.setattr("olr_pg.simulator.simulation.COPIED_FROM", 2 * size)
    shape = DatabaseShape(RedoFormat(COMPATIBLE["19"]), con_id=3, pace=PACE)
    folder = tmp_path / "source"
    made = simulate(7, folder, workload=workload, size=4 * size, shape=shape, prefilled=True)
    project = loads(Source(folder, made, []))
    assert sum(one.rows for one in project.load()) >= 40
    project.run()
    assert verified(project) == made.rows


@pytest.mark.parametrize("seed", [3, 8])
def test_random_tables(tmp_path: Path, loads: Any, seed: int) -> None:
    shape = DatabaseShape(RedoFormat(COMPATIBLE["19"]), con_id=3, pace=PACE)
    folder = tmp_path / "source"
    summary = simulate(seed, folder, size=80_000, shape=shape, prefilled=True)
    project = loads(Source(folder, summary, []))
    builder = builder_of(project)
    loaded = {one.table: one.rows for one in project.load(builder=builder)}
    assert loaded == {table.full_name: len(table.at_start) for table in summary.tables}
    assert any(loaded.values())
    assert {part.state for part in builder.parts} <= {"created"}
    project.run()
    assert verified(project) == summary.rows
