"""Partitions that are older than the dictionary of a live source: their DDL is followed by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.appliance.operated_site import Site

pytestmark = pytest.mark.timeout(900)


def test_ddl_on_partitions_of_a_table_that_was_added_is_followed(site: Site) -> None:
    new = f"P{site.a[1:]}"
    site.create(
        new, "PRIMARY KEY", "PARTITION BY RANGE (id) (PARTITION p1 VALUES LESS THAN (100),"
        " PARTITION p2 VALUES LESS THAN (200), PARTITION p3 VALUES LESS THAN (MAXVALUE))",
    )  # fmt: skip
    site.run()
    place = f"app.{new}"
    parts = {"p1": "MINVALUE) TO (100", "p2": "100) TO (200", "p3": "200) TO (MAXVALUE"}
    site.sql(f"CREATE TABLE {place} (id int PRIMARY KEY, x int) PARTITION BY RANGE (id)")
    for part, bounds in parts.items():
        site.sql(f"CREATE TABLE {place}_{part} PARTITION OF {place} FOR VALUES FROM ({bounds})")
    site.command("tables", "add", f"APP.{new}")
    site.change(f"INSERT INTO {new} VALUES (150, 1)", f"INSERT INTO {new} VALUES (250, 1)")
    site.run()
    site.change(f"ALTER TABLE {new} TRUNCATE PARTITION p3")
    site._row = 110  # later rows do not belong to the dropped partition
    site.change(f"ALTER TABLE {new} DROP PARTITION p1")
    site.run()
    assert site.sql(f"SELECT id FROM {place} WHERE id < 100 OR id >= 150") == [(150,)]
    assert site.differing() == []
