"""Chooses how values of a source column are converted for a target column, according to the
configuration.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from olr_pg.applier.target.modifiers import check_modifiers, may_round, numeric_scale
from olr_pg.datatypes.convert import encoder_for
from olr_pg.datatypes.mapping import OracleType, PgKind, oracle_type_name, pg_type
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.target.catalogue import TargetColumn
    from olr_pg.datatypes.columns import ValueColumn
    from olr_pg.datatypes.convert import DatabaseFacts, Encoder
    from olr_pg.datatypes.mapping import OracleColumn
    from olr_pg.datatypes.policies import Counters

    Check = Callable[[ValueColumn], None]
    Encoded = tuple[ValueColumn, Counters]

_SCALE_AT: Final = 6
"""The offset of the number of fractional digits in the binary format of a numeric."""

_HEADER: Final = 4
"""The type modifier of a varchar is its length plus this number (varchar.c)."""

_ACTION: Final = (
    "choose a type that can store the value (`apply.columns`), and change the target's column to"
    " that type. Or correct the row in the source"
)


def column_encoder(
    settings: ApplierSettings,
    table: str,
    column: OracleColumn,
    target: TargetColumn,
    *,
    described: OracleColumn | None = None,
    facts: DatabaseFacts | None = None,
) -> Encoder:
    """Choose the encoder of a source column for a target column.

    If the type of the column is configured, the encoder refuses values that PostgreSQL would
    silently round or truncate.

    Args:
        table: ``OWNER.NAME``.
        described: the type of the values, if it differs from the type in the dictionary.
        facts: the properties of the database from which the values come, if it is not the source
            database.

    Raises:
        OlrPgError: any error of `encoder_for`; 2057, the target rounds values of the source's type.
    """
    check_modifiers(column, target)
    try:
        encoder = encoder_for(
            described or column,
            target.kind,
            facts=facts or settings.facts,
            policies=settings.choices.policies(table, column.name, settings.policies),
        )
    except OlrPgError as error:
        if error.code != Code.TYPE_NOT_CONVERTIBLE:
            raise
        # Remove a length of 0, which means that the protocol's description contains no length.
        name = oracle_type_name(column).removesuffix("(0)")
        raise OlrPgError(
            error.code, f"{name} to {target.base_name}", action=error.action, **error.where
        ) from error
    if encoder.kind is PgKind.BOOL and column.type_code != OracleType.BOOLEAN:
        out = no_flag_setting(table, column)
        encoder = replace(encoder, encode=partial(_flags, encode=encoder.encode, out=out))
    check = _check(column, target) if settings.choices.chosen_type(table, column) else None
    if check is None:
        return encoder
    return replace(
        encoder, encode=partial(_checked, encode=encoder.encode, check=check), plain=False
    )


def no_flag_setting(table: str, column: OracleColumn) -> str:
    """Return the setting in `apply` that keeps a column of ``OWNER.NAME`` from becoming boolean."""
    return f'"columns": {{"{table}.{column.name}": {{"type": "{pg_type(column).name}"}}}}'


def _flags(values: ValueColumn, encode: Callable[[ValueColumn], Encoded], out: str) -> Encoded:
    """Encode flags as boolean. If a value is not a flag, the error names the setting that keeps the
    column from becoming boolean.
    """
    try:
        return encode(values)
    except OlrPgError as error:
        if error.code != Code.VALUE_OUT_OF_RANGE:
            raise
        detail = f"{error.detail}; if the column is not a boolean flag, set {out} in `apply`"
        raise OlrPgError(error.code, detail, action=error.action, **error.where) from error


def _checked(
    values: ValueColumn, encode: Callable[[ValueColumn], Encoded], check: Check
) -> Encoded:
    encoded, counters = encode(values)
    check(encoded)
    return encoded, counters


def _check(column: OracleColumn, target: TargetColumn) -> Check | None:
    """Return a function that checks encoded values; None if PostgreSQL would not change any
    value.
    """
    if may_round(column, target) is not None:
        kept = numeric_scale(target.modifier)
        if kept < 0:
            raise OlrPgError(
                Code.VALUE_WOULD_LOSE,
                f"{oracle_type_name(column)} to a numeric of scale {kept}",
                column=column.name,
            )
        return partial(_check_digits, kept=kept)
    if target.base_oid == PgKind.VARCHAR and target.modifier >= _HEADER:
        return partial(_check_characters, most=target.modifier - _HEADER)
    return None


def _check_digits(values: ValueColumn, kept: int) -> None:
    """Refuse numerics with more fractional digits than the target keeps."""
    rows = np.flatnonzero(values.length > 0)
    at = values.offset[rows] + _SCALE_AT
    digits = values.data[at].astype(np.int64) << 8 | values.data[at + 1]
    more = np.flatnonzero(digits > kept)
    if len(more):
        raise OlrPgError(
            Code.VALUE_WOULD_LOSE,
            f"{counted(int(digits[more[0]]), 'digit')} after the decimal point, but the target"
            f" keeps only {kept}",
            action=_ACTION,
            row=int(rows[more[0]]),
        )


def _check_characters(values: ValueColumn, most: int) -> None:
    """Refuse texts that are too long, even if only blanks exceed the length: PostgreSQL would
    silently remove such blanks.
    """
    for row in np.flatnonzero(values.length > most).tolist():
        length = len((values.value(row) or b"").decode("utf-8", "replace"))
        if length > most:
            raise OlrPgError(
                Code.VALUE_OUT_OF_RANGE,
                f"the text has {length} characters, but the target's column accepts only {most}",
                action=_ACTION,
                row=row,
            )
