"""The target's speed is measured, and nothing is left of it."""

from __future__ import annotations

import psycopg

from olr_pg.assessment.report import (
    AssessedTable,
    Carrier,
    Effort,
    Item,
    Report,
    join_reports,
    measure_rates,
)
from olr_pg.dictionary.inventory import LogDay, OtherSchema


def test_a_measurement_leaves_nothing(postgres_database: str) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        found = measure_rates(connection, 4)
        assert found.copy_bytes > 0
        assert found.updates > 0
        left = connection.execute("SELECT to_regclass('pg_temp.olr_pg_rate')").fetchone()
    assert left == (None,)


DAY = LogDay(day="2026-03-01", logs=3, bytes=1_000)


def report(minutes: int) -> Report:
    return Report(
        database="CDB",
        version="19",
        scn=77,
        owners=("SHOP",),
        items=[Item("VIEW", "SHOP.V", Carrier.BY_HAND, Effort.LOW, minutes)],
        tables=[AssessedTable("SHOP.A", "table", 1, 10, 0, "yes", "", "primary key: ID", ())],
        others=(OtherSchema(owner="HR", objects=2),),
        unread=("DBA_JOBS",),
        redo=(DAY,),
        rates=None,
    )


def test_that_of_one_is_as_it_is() -> None:
    alone = report(5)
    assert join_reports({"": alone}) is alone


def test_each_thing_has_its_container_in_its_name() -> None:
    both = join_reports({"PDB1": report(5), "PDB2": report(7)})
    assert list(both.owners) == ["PDB1.SHOP", "PDB2.SHOP"]
    assert [item.name for item in both.items] == ["PDB1.SHOP.V", "PDB2.SHOP.V"]
    assert [table.name for table in both.tables] == ["PDB1.SHOP.A", "PDB2.SHOP.A"]
    assert [other.owner for other in both.others] == ["PDB1.HR", "PDB2.HR"]
    assert both.unread == ["DBA_JOBS in PDB1", "DBA_JOBS in PDB2"]
    assert both.minutes == 12
    assert both.replicated_bytes == 20
    assert both.redo == (DAY,)
