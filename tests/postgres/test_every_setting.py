"""Whatever settings a role has in its database, and whatever casts the database has, the rows are
the same whichever way they take.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import psycopg
import pytest

from tests.applier.test_every_way import write
from tests.postgres.every_setting import PREVENTING, rows_of_each_way, settings_of

GROUPS = 3
"""Enumerations have more values; `every_setting` goes through all of them."""

CASTS = "".join(
    f"CREATE CAST ({one} AS {other}) WITH INOUT AS IMPLICIT;"
    for types, others in (
        ("int2 int4 int8 numeric float4 float8 oid", "text"),
        ("date time timestamp timestamptz interval uuid json", "text"),
        ("text varchar", "int4 int8 numeric date timestamp timestamptz uuid json jsonb"),
    )
    for one in types.split()
    for other in others.split()
)
"""Casts that migrations from Oracle often create, so that queries convert types as in Oracle. With
them, some operators are ambiguous for PostgreSQL.
"""


@pytest.mark.parametrize("group", range(GROUPS))
def test_the_settings_of_a_role_change_no_row(
    group: int, tmp_path: Path, postgres_database: str, second_database: str
) -> None:
    part = write(tmp_path)
    expected = rows_of_each_way(second_database, [], part)
    chosen = [
        (setting.name, value)
        for setting in settings_of(postgres_database)
        if setting.name not in PREVENTING
        for value in islice(setting.values(), group, group + 1)
    ]
    assert chosen
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute(CASTS.encode())
    assert rows_of_each_way(postgres_database, chosen, part) == expected
