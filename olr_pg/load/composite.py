"""Composite images taken apart again: for the rows that are shown or repaired."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import orjson
import psycopg
from psycopg import sql

from olr_pg.applier.target.connection import Binary
from olr_pg.applier.target.percent_signs import escape_percent_signs
from olr_pg.datatypes.mapping import PgKind
from olr_pg.load.canonical import canonical_type

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from psycopg import Connection

    from olr_pg.applier.target.catalogue import TargetColumn


class ImageField(NamedTuple):
    """Holds one column's value in a row; None is NULL."""

    column: TargetColumn
    value: bytes | None

    @property
    def parameter(self) -> Binary | None:
        """The value for a ``%b`` placeholder of `placeholder`'s."""
        return None if self.value is None else Binary(self.value)


def fields_of(image: bytes, columns: Sequence[TargetColumn]) -> list[ImageField]:
    """Split a composite image (`load.row_images.composites`, ``record_send``) into its values."""
    fields, at = [], 4
    for column in columns:
        size = int.from_bytes(image[at + 4 : at + 8], "big", signed=True)
        at += 8
        fields.append(ImageField(column, None if size < 0 else image[at : at + size]))
        at += max(size, 0)
    assert at == len(image)
    return fields


def placeholder(column: TargetColumn) -> sql.Composable:
    """Make the expression that turns a value in the canonical form into the column's type."""
    own = escape_percent_signs(sql.SQL(column.base_name))
    if canonical_type(column) == column.base_oid:
        return sql.SQL("%b::{}").format(own)
    return sql.SQL("%b::text::{}").format(own)


def shown(connection: Connection[Any], fields: Sequence[ImageField]) -> dict[str, Any]:
    """Show values as JSON has them: numbers exact, dates in ISO 8601, bytes as hex.

    A document that readers of JSON may not take, for its depth or its numbers, is a string.
    """
    if not fields:
        return {}
    parts = sql.SQL(", ").join(
        sql.SQL("to_jsonb({})::text").format(_as_shown(field.column)) for field in fields
    )
    try:
        with connection.transaction(), connection.cursor(binary=False) as cursor:
            row = cursor.execute(
                sql.SQL("SELECT {}").format(parts), [field.parameter for field in fields]
            ).fetchone()
    except psycopg.errors.UntranslatableCharacter:
        if len(fields) > 1:
            single = [shown(connection, [field]) for field in fields]
            return {name: value for one in single for name, value in one.items()}
        # The target cannot have this text of the source: its encoding lacks a character.
        value = fields[0].value
        return {fields[0].column.name: None if value is None else bytes(value).decode()}
    assert row is not None
    return {field.column.name: _read(text) for field, text in zip(fields, row, strict=True)}


def _read(text: str | None) -> Any:
    if text is None:
        return None
    try:
        value = json.loads(text)
        orjson.dumps([[value]])  # as deep as it stands in a line of the file
    except (RecursionError, TypeError):
        return text
    return value


def _as_shown(column: TargetColumn) -> sql.Composable:
    if column.base_oid == PgKind.NUMERIC:
        # JSON readers make floats of numbers.
        return sql.SQL("({})::text").format(placeholder(column))
    return placeholder(column)
