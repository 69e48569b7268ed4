"""PostgreSQL's fixed limits, judged by a real server: what is said to fit is stored."""

from __future__ import annotations

import random
import string
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from olr_pg.applier.target.catalogue import NewColumn, create_table
from olr_pg.applier.target.fixed_limits import (
    COLUMNS_MAX,
    index_row_bytes,
    index_row_bytes_max,
    read_block_bytes,
    row_bytes,
    row_bytes_max,
    stored_column,
)
from olr_pg.applier.target_checks import check_planned_target, check_target
from olr_pg.datatypes.choices import Choices, ColumnChoice
from olr_pg.datatypes.mapping import OracleType, PgKind, pg_type
from olr_pg.dictionary.model import Column, KeyKind, Table
from olr_pg.dictionary.structure import Index, Structure, UniqueKey
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.observability.findings import Finding

Replication = Any  # tests/applier/conftest.py

_DIGITS_MAX: Final = 38
_INLINE_TEXT: Final = 23
"""Bytes of the longest text that PostgreSQL does not store outside its row."""


def column(number: int, type_code: OracleType, length: int = 22, **facts: Any) -> Column:
    if type_code == OracleType.VARCHAR2:
        facts |= {"charset_id": 873, "charset_form": 1}
    return Column(f"C{number}", number, number, number, type_code, length, **facts)


def wide(*columns: Column, key: tuple[int, ...] = ()) -> Table:
    kind = KeyKind.PRIMARY if key else KeyKind.NONE
    return Table("S", "R", 1, 1, columns, key_kind=kind, key=key)


@pytest.fixture(scope="module")
def connection(module_database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(module_database, autocommit=True) as connection:
        yield connection


def text_of(size: int, chance: random.Random) -> str:
    """A text that is not compressed."""
    return "".join(chance.choices(string.ascii_letters + string.digits, k=size))


def largest(one: Column, chance: random.Random) -> object:
    """The value that needs most bytes of a page."""
    kind = pg_type(one).kind
    if kind == PgKind.NUMERIC:
        digits, scale = one.precision or _DIGITS_MAX, one.scale or 0
        return f"{'9' * (digits - scale) or '0'}.{'9' * scale}".rstrip(".")
    if kind in {PgKind.VARCHAR, PgKind.TEXT}:
        return text_of(min(one.length, _INLINE_TEXT), chance)
    if kind == PgKind.BYTEA:
        return chance.randbytes(min(one.length, _INLINE_TEXT))
    return {
        PgKind.INT2: 1, PgKind.INT4: 1, PgKind.INT8: 1, PgKind.FLOAT4: 0.5, PgKind.FLOAT8: 0.5,
        PgKind.TIMESTAMP: "2024-01-01", PgKind.TIMESTAMPTZ: "2024-01-01",
        PgKind.INTERVAL: "1 day",
    }[kind]  # fmt: skip


def is_stored(
    connection: psycopg.Connection[Any], types: Sequence[str], row: Sequence[object], index: str
) -> bool:
    """Whether a table of these types stores the row; `index` is of its columns, or empty."""
    names = [f"c{at}" for at in range(len(types))]
    made = ", ".join(f"{name} {type_}" for name, type_ in zip(names, types, strict=True))
    connection.execute("DROP TABLE IF EXISTS stored")
    connection.execute(f"CREATE TABLE stored ({made})".encode())
    if index:
        connection.execute(f"CREATE INDEX ON stored ({index})".encode())
    values = sql.SQL(", ").join(map(sql.Literal, row))
    try:
        connection.execute(sql.SQL("INSERT INTO stored VALUES ({})").format(values))
    except psycopg.errors.ProgramLimitExceeded:
        return False
    return True


TYPES = st.one_of(
    st.builds(lambda n: (OracleType.VARCHAR2, {"length": n}), st.integers(1, 60)),
    st.builds(lambda n: (OracleType.RAW, {"length": n}), st.integers(1, 60)),
    st.builds(
        lambda p, s: (OracleType.NUMBER, {"precision": p, "scale": min(p, s)}),
        st.integers(1, _DIGITS_MAX), st.integers(0, 10),
    ),
    st.sampled_from(
        [
            (OracleType.DATE, {}), (OracleType.BINARY_FLOAT, {}), (OracleType.BINARY_DOUBLE, {}),
            (OracleType.TIMESTAMP_TZ, {"scale": 6}), (OracleType.NUMBER, {}),
            (OracleType.INTERVAL_DS, {"precision": 2, "scale": 6}),
        ]
    ),
)  # fmt: skip


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kinds=st.lists(TYPES, min_size=1, max_size=8),
    share=st.floats(0.8, 1.3),
    seed=st.integers(0, 2**32),
)
def test_a_row_that_is_said_to_fit_is_stored(
    connection: psycopg.Connection[Any],
    kinds: list[tuple[OracleType, dict[str, Any]]],
    share: float,
    seed: int,
) -> None:
    """Tables about as large as a page, of drawn types in turn."""
    limit = row_bytes_max(read_block_bytes(connection))
    chance, columns = random.Random(seed), list[Column]()
    stored = [stored_column(column(1, one, **facts), pg_type(column(1, one, **facts)).kind)
              for one, facts in kinds]  # fmt: skip
    while row_bytes(stored[at % len(kinds)] for at in range(len(columns))) < share * limit:
        one, facts = kinds[len(columns) % len(kinds)]
        columns.append(column(len(columns) + 1, one, **facts))
        if len(columns) == COLUMNS_MAX:
            break
    types = [pg_type(one).name for one in columns]
    row = [largest(one, chance) for one in columns]
    size = row_bytes(stored_column(one, pg_type(one).kind) for one in columns)
    stores = is_stored(connection, types, row, "")
    assert stores or size > limit
    exact = all(one in {OracleType.VARCHAR2, OracleType.RAW} for one, _ in kinds)
    if exact and size - len(columns) // 8 - 8 > limit:  # without bits for NULL
        assert not stores


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lengths=st.lists(st.integers(1, 4000), min_size=1, max_size=5),
    sizes=st.tuples(st.integers(2_600, 2_800), st.booleans()),
    seed=st.integers(0, 2**32),
)
def test_a_key_is_stored_exactly_if_it_is_said_to_fit(
    connection: psycopg.Connection[Any],
    lengths: list[int],
    sizes: tuple[int, bool],
    seed: int,
) -> None:
    wanted, scales = sizes
    if scales:  # together about as large as the limit
        lengths = [max(one * wanted // sum(lengths), 1) for one in lengths]
    columns = [column(at + 1, OracleType.VARCHAR2, one) for at, one in enumerate(lengths)]
    limit = index_row_bytes_max(read_block_bytes(connection))
    size = index_row_bytes(stored_column(one, PgKind.TEXT) for one in columns)
    chance = random.Random(seed)
    row = [text_of(one, chance) for one in lengths]
    names = ", ".join(f"c{at}" for at in range(len(lengths)))
    assert is_stored(connection, ["text"] * len(row), row, names) == (size <= limit)


def limits(found: list[Finding]) -> list[Finding]:
    return [one for one in found if one.check == "postgres.limits"]


def test_more_columns_than_a_table_can_have(replication: Replication) -> None:
    numbers = [column(at + 1, OracleType.NUMBER, precision=4, scale=0) for at in range(1_601)]
    plan = replication.settings(create_tables=True)
    (found,) = limits(check_target(plan, [wide(*numbers)]))
    assert found.severity is Severity.ERROR
    assert "S.R has 1,601 columns" in found.what
    assert "exclude 1 or more columns" in found.mend[0]
    assert limits(check_target(plan, [wide(*numbers[:-1])])) == []
    with psycopg.connect(replication.target, autocommit=True) as connection:
        made = [NewColumn(one.name, "int2", not_null=False) for one in numbers]
        with pytest.raises(OlrPgError) as caught:
            create_table(connection, "s", "r", made, [])
        assert caught.value.code == Code.STATEMENT_REFUSED
        assert "1600 columns" in caught.value.detail
        assert "filter.columns" in caught.value.action
        create_table(connection, "s", "r", made[:-1], [])


def test_rows_and_keys_that_can_be_too_large_are_warned_of(replication: Replication) -> None:
    numbers = [column(at + 1, OracleType.NUMBER) for at in range(400)]
    plan = replication.settings(create_tables=True)
    (found,) = limits(check_target(plan, [wide(*numbers)]))
    assert found.severity is Severity.WARNING
    assert "all 400 columns can need 9,6" in found.what
    assert "has space for 8,160" in found.what
    assert check_planned_target(plan, [wide(*numbers)]) == [found]
    small = Choices(columns={f"S.R.{one.name}": ColumnChoice("bigint") for one in numbers})
    assert limits(check_planned_target(replication.settings(choices=small), [wide(*numbers)])) == []

    texts = [column(at + 1, OracleType.VARCHAR2, 1_000) for at in range(4)]
    structure = Structure(
        unique_keys=(UniqueKey(owner="S", table="R", name="U", columns=("C1", "C2")),),
        indexes=(
            Index(owner="S", table="R", name="I", columns=("C2", "C3", "C4")),
            Index(owner="S", table="R", name="J", columns=("C4",)),
        ),
    )
    table = wide(*texts, key=(1, 2, 4))
    (found,) = limits(check_target(plan, [table], structure))
    assert "S.R: rows of the key, the index I can need more than the 2,704 bytes" in found.what
    assert found.mend[1] == (
        'SELECT MAX(NVL(LENGTHB("C1"), 0) + NVL(LENGTHB("C2"), 0) + NVL(LENGTHB("C4"), 0))'
        ' FROM "S"."R";'
    )
    assert check_planned_target(plan, [table], structure) == [found]
    many = [column(at + 1, OracleType.VARCHAR2, 100) for at in range(32)]
    (found,) = check_planned_target(plan, [wide(*many, key=tuple(range(1, 33)))])
    assert found.mend[1].count("LENGTHB") == 32


def test_values_outside_of_the_row_are_of_every_large_type() -> None:
    """CLOB, BLOB, JSON, VECTOR and XMLTYPE count with a pointer, whatever length Oracle names."""
    lobs = [
        column(1, one, 4000)
        for one in (OracleType.CLOB, OracleType.BLOB, OracleType.JSON, OracleType.VECTOR)
    ]
    for one in (*lobs, column(1, OracleType.OPAQUE, 1, xml=True)):
        assert stored_column(one, PgKind.TEXT).in_row == _INLINE_TEXT + 1
    assert stored_column(column(1, OracleType.ROWID, 10), PgKind.TEXT).in_row == 19
