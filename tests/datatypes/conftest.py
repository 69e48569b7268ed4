"""What the value tests share: the value vectors, columns of a table, PostgreSQL as the judge."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from olr_pg.datatypes.columns import ValueColumn

    Judge = Callable[[str, ValueColumn], list[str | None]]


@dataclass(frozen=True)
class FakeColumn:
    """A column as the dictionary has it."""

    type_code: int
    length: int = 22
    precision: int | None = None
    scale: int | None = None
    charset_id: int | None = None
    charset_form: int | None = None
    char_length: int | None = None
    xml: bool = False
    name: str = "C"


@pytest.fixture
def column_type() -> type[FakeColumn]:
    return FakeColumn


@pytest.fixture(scope="session")
def judge(postgres: str) -> Iterator[Judge]:
    """Loads a column by binary COPY into a column of a type and reads what PostgreSQL prints."""
    with psycopg.connect(postgres, autocommit=True) as connection:

        def run(sql_type: str, values: ValueColumn) -> list[str | None]:
            return _copy_and_read(connection, sql_type, values.values())

        yield run


def _copy_and_read(
    connection: psycopg.Connection[Any], sql_type: str, items: Sequence[bytes | None]
) -> list[str | None]:
    rows = bytearray(b"PGCOPY\n\xff\r\n\0" + bytes(8))
    for number, item in enumerate(items):
        rows += struct.pack(">hii", 2, 4, number)
        rows += struct.pack(">i", -1) if item is None else struct.pack(">i", len(item)) + item
    rows += struct.pack(">h", -1)
    with connection.cursor() as cursor:
        cursor.execute("SET TimeZone = 'UTC'; SET IntervalStyle = 'iso_8601'")
        cursor.execute("DROP TABLE IF EXISTS pg_temp.judged")
        cursor.execute(f"CREATE TEMP TABLE judged (n integer, v {sql_type})".encode())
        with cursor.copy("COPY judged FROM STDIN (FORMAT BINARY)") as copy:
            copy.write(bytes(rows))
        cursor.execute("SELECT v::text FROM judged ORDER BY n")
        return [row[0] for row in cursor.fetchall()]
