"""Maps the columns of a record batch to the columns of the target table."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from olr_pg.applier.received.change_reading import ROW_BYTES_MAX
from olr_pg.applier.target.column_encoder import column_encoder
from olr_pg.datatypes.columns import per_distinct
from olr_pg.datatypes.mapping import OracleType, PgKind, oracle_type_name
from olr_pg.datatypes.plain import PlainForm, plain_form
from olr_pg.datatypes.policies import NOTHING, Counters
from olr_pg.datatypes.temporal import decode_timestamp, offset_minutes, shifted
from olr_pg.errors import Code, OlrPgError, located
from olr_pg.load.arrow import ArrowColumn, arrow_column
from olr_pg.load.table_data import place_in

if TYPE_CHECKING:
    import pyarrow as pa

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.statements.target_plan import TablePlan
    from olr_pg.applier.target.catalogue import TargetColumn
    from olr_pg.datatypes.columns import ValueColumn
    from olr_pg.datatypes.convert import Encoder
    from olr_pg.dictionary.model import Column, Table

_NO_TEXT = frozenset({OracleType.JSON, OracleType.ROWID, OracleType.UROWID})
"""Types that table data can contain as text, although replication never writes them to bytea as
text.
"""

ROWID: str = "ROWID"
"""The optional column of the table data with the ROWID of each row, for messages."""


class LoadColumn(NamedTuple):
    """A column of the table data with its target and conversions.

    Attributes:
        place: index in the record batch.
        field: index of the column in the target table.
        arrow: converts Arrow arrays to Oracle's internal form.
        encoder: converts Oracle's internal form to PostgreSQL's binary form.
        form: the form in which a kernel converts most of the values (`PlainForm.NONE` if only the
            encoder can).
    """

    place: int
    field: int
    target: TargetColumn
    arrow: ArrowColumn
    encoder: Encoder
    form: PlainForm = PlainForm.NONE


class EncodedBatch(NamedTuple):
    """A record batch in PostgreSQL's binary form.

    Attributes:
        rows: number of rows.
        columns: one per `LoadColumn`.
        losses: counts of values that policies changed, per column.
    """

    rows: int
    columns: tuple[ValueColumn, ...]
    losses: tuple[Counters, ...]


def bind_columns(
    plan: TablePlan, table: Table, schema: pa.Schema, settings: ApplierSettings
) -> tuple[LoadColumn, ...]:
    """Bind every delivered column of the source's table to its columns in the table data and in the
    target, except generated columns of the target.

    Raises:
        OlrPgError: 5006 the target lacks the column, 5007 the type of the target column is
            incompatible, 5101 the type in the table data is incompatible, 5103 the table data lacks
            the column.
    """
    bound = []
    for column in table.delivered:
        place = place_in(schema, table, column)
        field = plan.field(column.name)
        target = plan.target.columns[field]
        if target.generated:
            continue
        try:
            arrow = arrow_column(column, schema.field(place).type)
        except OlrPgError as error:
            raise located(error, table=table.full_name) from error
        encoder = _encoder(arrow, column, target, settings, table.full_name)
        form = PlainForm.NONE
        if encoder.plain:
            form = plain_form(arrow.described, encoder.kind, settings.facts)
        bound.append(LoadColumn(place, field, target, arrow, encoder, form))
    return tuple(bound)


def _encoder(
    arrow: ArrowColumn,
    column: Column,
    target: TargetColumn,
    settings: ApplierSettings,
    table: str,
) -> Encoder:
    facts = replace(settings.facts, timezone="+00:00") if arrow.in_utc else settings.facts
    try:
        encoder = column_encoder(
            settings, table, column, target, described=arrow.described, facts=facts
        )
        as_text = column.type_code in _NO_TEXT and arrow.described.type_code != column.type_code
        if as_text and encoder.kind is PgKind.BYTEA:
            raise OlrPgError(
                Code.TYPE_NOT_CONVERTIBLE, f"{oracle_type_name(column)} as text to bytea"
            )
        if arrow.in_utc and encoder.kind is not PgKind.TIMESTAMPTZ:
            return replace(encoder, encode=partial(_local_texts, zone=settings.facts.timezone))
        return encoder
    except OlrPgError as error:
        raise OlrPgError(
            Code.TARGET_TYPE_UNFIT,
            f"{error.title}: {error.detail}",
            table=table,
            column=column.name,
            target=target.base_name,
        ) from error


def _local_texts(values: ValueColumn, zone: str) -> tuple[ValueColumn, Counters]:
    """Convert TIMESTAMP WITH LOCAL TIME ZONE values, given in UTC, to text. The text contains local
    times in DBTIMEZONE if that is an offset, and times in UTC if it is a region
    (`local_isoformat`).
    """
    minutes = offset_minutes(zone)

    def text(raw: bytes) -> bytes:
        utc = decode_timestamp(raw)
        if minutes is None:
            return f"{utc.isoformat()}Z".encode()
        return f"{shifted(utc, minutes * 60).isoformat()}{zone.strip()}".encode()

    return per_distinct(values, text), NOTHING


def encode_batch(
    columns: tuple[LoadColumn, ...], batch: pa.RecordBatch, first_row: int = 0
) -> EncodedBatch:
    """Convert every value of a batch to the binary form of the target column's type in PostgreSQL.

    Args:
        first_row: number of the batch's first row in its partition, for messages.

    Raises:
        OlrPgError: 2050–2057, 5102 a value does not fit (the error names its column and row), 5018
            a value is too large.
    """
    encoded, losses = [], []
    for column in columns:
        given = converted(column, batch, first_row)
        values, lost = encoded_values(column, given, batch, first_row)
        encoded.append(values)
        losses.append(lost)
    return EncodedBatch(batch.num_rows, tuple(encoded), tuple(losses))


def converted(column: LoadColumn, batch: pa.RecordBatch, first_row: int) -> ValueColumn:
    """Convert the values of a column to Oracle's internal form.

    Raises:
        OlrPgError: see `encode_batch`.
    """
    try:
        return column.arrow.convert(batch.column(column.place))
    except OlrPgError as error:
        raise at_row(error, column.encoder.column_name, batch, first_row) from error


def encoded_values(
    column: LoadColumn, values: ValueColumn, batch: pa.RecordBatch, first_row: int
) -> tuple[ValueColumn, Counters]:
    """Convert the values of a column from Oracle's internal form to PostgreSQL's.

    Returns:
        (the values, counts of values that policies changed).

    Raises:
        OlrPgError: see `encode_batch`.
    """
    try:
        encoded, lost = column.encoder(values)
    except OlrPgError as error:
        raise at_row(error, column.encoder.column_name, batch, first_row) from error
    check_sizes(column, encoded, batch, first_row)
    return encoded, lost


def check_sizes(
    column: LoadColumn, values: ValueColumn, batch: pa.RecordBatch, first_row: int
) -> None:
    """Raise an error if a value is larger than PostgreSQL allows in any row.

    Raises:
        OlrPgError: 5018, the value is too large.
    """
    if len(values.length) and int(values.length.max()) > ROW_BYTES_MAX:
        row = int(values.length.argmax())
        too_large = OlrPgError(Code.LOB_TOO_LARGE, f"more than {ROW_BYTES_MAX} bytes", row=row)
        raise at_row(too_large, column.encoder.column_name, batch, first_row)


def at_row(error: OlrPgError, column: str, batch: pa.RecordBatch, first_row: int) -> OlrPgError:
    """Return `error` with the row's number in the partition, and its ROWID if known."""
    where = {**error.where, "column": column}
    row = where.get("row")
    if row is not None:
        where["row"] = first_row + int(row)
        place = batch.schema.get_field_index(ROWID)
        if place >= 0:
            where["rowid"] = str(batch.column(place)[int(row)])
    return OlrPgError(error.code, error.detail, action=error.action, **where)


def add_losses(
    sums: dict[str, Counters], columns: tuple[LoadColumn, ...], losses: tuple[Counters, ...]
) -> None:
    """Add a batch's counts of changed values to the sums by column name. Columns without changed
    values get no entry.
    """
    for column, lost in zip(columns, losses, strict=True):
        add_loss(sums, column.encoder.column_name, lost)


def add_loss(sums: dict[str, Counters], column: str, lost: Counters) -> None:
    """Add one column's counts of changed values to the sums, if there are any."""
    if lost != NOTHING:
        sums[column] = sums.get(column, NOTHING) + lost
