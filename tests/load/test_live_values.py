"""Values of a live database through the real driver: the load makes of them what replication does.

Replication has Oracle's bytes, the load what Oracle's functions and the driver make of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from olr_pg.applier.settings import ApplierSettings
from olr_pg.applier.statements.target_plan import TablePlan
from olr_pg.applier.target.catalogue import TargetColumn, TargetTable
from olr_pg.config.source_section import OracleSource
from olr_pg.config.table_sections import Filter
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.convert import DEFAULT_FACTS, DatabaseFacts, encoder_for
from olr_pg.datatypes.mapping import OracleType, PgKind, pg_kind
from olr_pg.datatypes.temporal import DateTime, Zone, ZonedDateTime, encode_timestamp, shifted
from olr_pg.datatypes.vector import VectorFormat, VectorValue, encode_vector
from olr_pg.decoding.filters import filters_of
from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.load.column_binding import bind_columns, encode_batch
from olr_pg.load.live_rows import LiveTables
from olr_pg.oracle.table_query import rows_statement
from olr_pg.scalars import format_rowid
from olr_pg.simulator.oracle_net.row_versions import RowVersions
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import OracleState
from tests.datatypes.zoned_timestamps import encode_timestamp_tz

if TYPE_CHECKING:
    from collections.abc import Sequence

SCN = 5_000
SEGMENT = 81_001
ID = Column("ID", 1, 1, 1, 2, 22, precision=12, scale=0, nullable=False)
DOCUMENT = Column("DOCUMENT", 3, 3, 3, 112, 4000, charset_id=873, charset_form=1)
"""A LOB, with which rows are read another way."""


def value_column(code: int, length: int = 40, **facts: Any) -> Column:
    return Column("C", 2, 2, 2, code, length, **facts)


def batches(table: Table, rows: Sequence[Sequence[object]]) -> list[Any]:
    """Rows of a table, as the load reads them from a database."""
    snapshot = Snapshot(SCN, Database("LIVE", activation=1, resetlogs=(1,)), (table,))
    with StandIn(OracleState(snapshot, dbid=1)) as server:
        kept = RowVersions(server.state.catalogue, (table,))
        for number, row in enumerate(rows):
            kept.put(table, SCN, format_rowid(SEGMENT, 4 << 22 | 128, number), row)
        source = OracleSource.model_validate(
            {"user": "olr", "password": "olr", "server": server.connect_string}
        )
        live = LiveTables(source, "SELECT OWNER, TABLE_NAME FROM ALL_TABLES", filters_of(Filter()))
        try:
            (found,) = live.sources(live.choose(()))
        finally:
            live.close()
        read = [batch for part in found.data.partitions for batch in part.batches()]
        assert server.malformed == []
        return read


def loaded(
    column: Column,
    values: Sequence[object],
    target: str,
    *,
    lob: bool,
    facts: DatabaseFacts = DEFAULT_FACTS,
) -> list[Any]:
    """Values of one column in PostgreSQL's binary form.

    Args:
        values: as the stand-in keeps them.
        lob: the table has a LOB too.
    """
    columns = (ID, column, DOCUMENT) if lob else (ID, column)
    key: dict[str, Any] = {"key_kind": KeyKind.PRIMARY, "key": (1,)}
    table = Table("APP", "T", SEGMENT, SEGMENT, columns, **key)
    settings = ApplierSettings("", "", 0, "", facts=facts)
    types = {"id": PgKind.NUMERIC, "c": pg_kind(target) or PgKind.TEXT, "document": PgKind.TEXT}
    fields = tuple(TargetColumn(n, k, k, k.name.lower(), False, "") for n, k in types.items())
    into = TargetTable("app", "t", 1, 1, fields[: len(columns)], ("id",))
    plan = TablePlan(table.full_name, into, table, settings)
    rows = [(str(n), value, "text")[: len(columns)] for n, value in enumerate(values)]
    result: list[Any] = []
    for batch in batches(table, rows):
        bound = bind_columns(plan, table, batch.schema, settings)
        result += encode_batch(bound, batch).columns[1].values()
    return result


def replicated(
    column: Column,
    values: Sequence[bytes | None],
    target: str,
    facts: DatabaseFacts = DEFAULT_FACTS,
) -> list[Any]:
    """The same of Oracle's bytes."""
    return encoder_for(column, target, facts=facts)(column_of(values))[0].values()


def test_vectors_have_the_values_of_their_format() -> None:
    single = VectorValue(VectorFormat.FLOAT32, 3, np.array([1.1, -2.2, 3.3], "f4"))
    double = VectorValue(VectorFormat.FLOAT64, 2, np.array([1.1, -2.2], "f8"))
    # What Oracle prints of these (SQL Language Reference, FROM_VECTOR).
    printed = [
        "FLOAT32[1.10000002E+000,-2.20000005E+000,3.29999995E+000]",
        "FLOAT64[1.1000000000000001E+000,-2.2000000000000002E+000]",
        None,
    ]
    raw = [encode_vector(single), encode_vector(double), None]
    column = value_column(127)
    for lob in (False, True):
        for target in ("double precision[]", "text"):
            assert loaded(column, printed, target, lob=lob) == replicated(column, raw, target)


UTF8: dict[str, int] = {"charset_id": 873, "charset_form": 1}
NATIONAL: dict[str, int] = {"charset_id": 2000, "charset_form": 2}


def utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


@pytest.mark.parametrize("lob", [False, True])
@pytest.mark.parametrize(
    ("code", "facts", "raw"),
    [
        *((code, UTF8, b"caf\xe9") for code in (1, 96, 8)),
        *((code, UTF8, b"cut \xe2\x82") for code in (1, 96, 8)),
        (1, UTF8, b"\xed\xa0\xbd\xed\xb8\x80 in CESU-8"),
        *((code, NATIONAL, utf16("half \ud83d")) for code in (1, 96, 112)),
        *((code, NATIONAL, utf16("\ude00\ud83d turned")) for code in (1, 96, 112)),
    ],
)
def test_text_that_its_character_set_does_not_allow_is_loaded(
    code: int, facts: dict[str, int], raw: bytes, lob: bool
) -> None:
    column = value_column(code, **facts)
    good = "good \U0001f600".encode("utf-16-be" if facts is NATIONAL else "utf-8")
    values = [good, raw, None]
    assert loaded(column, values, "text", lob=lob) == replicated(column, values, "text")


WHEN = DateTime(2026, 3, 7, 1, 44, 39, 500_000_000)


def test_the_zone_of_a_timestamp_is_kept_where_text_keeps_it() -> None:
    column = value_column(181, 13, scale=9)
    values = {
        "2026-03-07T02:44:39.500000000+01:00": ZonedDateTime(WHEN, Zone(60)),
        "2026-03-06T21:14:39.500000000-04:30": ZonedDateTime(WHEN, Zone(-270)),
        "2026-03-07T01:44:39.500000000+00:00": ZonedDateTime(WHEN, Zone(0)),
        "2026-03-07T01:44:39.500000000Z": ZonedDateTime(WHEN, Zone(None, 100)),
    }
    raw = [encode_timestamp_tz(value) for value in values.values()]
    for target in ("text", "timestamptz"):
        found = loaded(column, [*values, None], target, lob=False)
        assert found == replicated(column, [*raw, None], target)


@pytest.mark.parametrize("zone", ["+00:00", "+02:00", "-03:30", "Europe/Warsaw"])
def test_a_local_timestamp_is_text_in_the_zone_of_the_database(zone: str) -> None:
    column = value_column(231, 11, scale=9)
    seconds = {"+02:00": 7_200, "-03:30": -12_600, "Europe/Warsaw": 3_600}.get(zone, 0)
    whole = WHEN._replace(hour=4)
    stored = [shifted(whole, seconds), shifted(whole._replace(nanosecond=0), seconds)]
    raw = [encode_timestamp(value) for value in stored]
    texts = ["2026-03-07T04:44:39.500000000Z", "2026-03-07T04:44:39.000000000Z", None]
    facts = DatabaseFacts(timezone=zone)
    for target in ("text", "timestamptz"):
        found = loaded(column, texts, target, lob=False, facts=facts)
        assert found == replicated(column, [*raw, None], target, facts)


@pytest.mark.parametrize(
    ("version", "returning"),
    [
        ("23.5.0.24.7", "RETURNING CLOB)"),
        ("23.6.0.24.10", "RETURNING CLOB FORMAT DENSE)"),
        ("23.26.0.0.0", "RETURNING CLOB FORMAT DENSE)"),
        ("24.1.0.0.0", "RETURNING CLOB FORMAT DENSE)"),
    ],
)
def test_sparse_vectors_are_read_without_their_places(version: str, returning: str) -> None:
    """Releases of Oracle count the places in their text from 0 or from 1."""
    key: dict[str, Any] = {"key_kind": KeyKind.PRIMARY, "key": (1,)}
    table = Table("APP", "T", SEGMENT, SEGMENT, (ID, value_column(127)), **key)
    statement, _ = rows_statement(table, SCN, None, version)
    assert f'FROM_VECTOR("C" {returning}' in statement


def test_a_document_that_oracle_cannot_print_is_an_error_in_every_release() -> None:
    """In 21c the default is NULL, which would be loaded."""
    table = Table("APP", "T", SEGMENT, SEGMENT, (ID, value_column(OracleType.JSON)))
    statement, _ = rows_statement(table, SCN, None, "21.3.0.0.0")
    assert 'JSON_SERIALIZE("C" RETURNING CLOB ERROR ON ERROR)' in statement


def test_a_sparse_vector_is_what_replication_makes_of_it() -> None:
    stored = VectorValue(VectorFormat.FLOAT32, 5, np.array([1.5, -2], "f4"), np.array([1, 3]))
    column, raw = value_column(127), [encode_vector(stored), None]
    printed = ["FLOAT32[0,1.5E+000,0,-2.0E+000,0]", None]
    for target in ("double precision[]", "text"):
        found = loaded(column, printed, target, lob=False)
        assert found == replicated(column, raw, target)
