"""Converts values of a target column, whose type can be configured, back to the values that
Oracle's SQL expects.

If a column has another kind of values in the target than in Oracle, each expression that reads the
column converts the value back. A boolean that is a flag in Oracle becomes ``CASE WHEN … THEN 'Y'
…``, and a date becomes midnight of that day. If there is no such conversion, the expression is
refused with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.applier.target.column_encoder import no_flag_setting
from olr_pg.datatypes.binary_float import flag_numbers, flag_texts
from olr_pg.datatypes.mapping import PgKind, refusal
from olr_pg.datatypes.policies import BooleanPairs
from olr_pg.dictionary.inventory import typed_column
from olr_pg.schema.presence import literal
from olr_pg.schema.value_kinds import Fact, ValueKind, column_fact

if TYPE_CHECKING:
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.datatypes.mapping import PgType
    from olr_pg.dictionary.inventory import InventoryColumn

_INTEGERS: Final = frozenset({PgKind.INT2, PgKind.INT4, PgKind.INT8})
_FLOATS: Final = frozenset({PgKind.FLOAT4, PgKind.FLOAT8})
_TEXTS: Final = frozenset({PgKind.TEXT, PgKind.VARCHAR, PgKind.BPCHAR})
_KEPT: Final[dict[ValueKind, frozenset[PgKind]]] = {
    ValueKind.INTEGER: _INTEGERS | {PgKind.NUMERIC},
    ValueKind.NUMBER: _INTEGERS | _FLOATS | {PgKind.NUMERIC},
    ValueKind.FLOAT: _FLOATS | {PgKind.NUMERIC},
    ValueKind.TEXT: _TEXTS | {PgKind.XML},
    ValueKind.CHAR: _TEXTS,
    ValueKind.DATE: frozenset({PgKind.TIMESTAMP}),
    ValueKind.TIMESTAMP: frozenset({PgKind.TIMESTAMP}),
    ValueKind.TIMESTAMPTZ: frozenset({PgKind.TIMESTAMPTZ}),
    ValueKind.INTERVAL: frozenset({PgKind.INTERVAL}),
    ValueKind.MONTHS: frozenset({PgKind.INTERVAL}),
    ValueKind.RAW: frozenset({PgKind.BYTEA, PgKind.XML}),
    ValueKind.BOOLEAN: frozenset({PgKind.BOOL}),
    ValueKind.XML: frozenset({PgKind.XML}),
}
"""For each kind of values in Oracle, the kinds of target columns for which Oracle's operators need
no conversion.
"""

_CASTS: Final[dict[tuple[ValueKind, PgKind], str]] = {
    (ValueKind.DATE, PgKind.DATE): "CAST({} AS TIMESTAMP(0))",
    (ValueKind.TIMESTAMP, PgKind.DATE): "CAST({} AS TIMESTAMP)",
    (ValueKind.RAW, PgKind.UUID): "UUID_SEND({})",
    (ValueKind.INTEGER, PgKind.TEXT): "CAST({} AS NUMERIC)",
    (ValueKind.NUMBER, PgKind.TEXT): "CAST({} AS NUMERIC)",
    (ValueKind.XML, PgKind.TEXT): "CAST({} AS XML)",
    (ValueKind.TEXT, PgKind.JSON): "CAST({} AS TEXT)",
    (ValueKind.TEXT, PgKind.BYTEA): "CONVERT_FROM({}, 'UTF8')",
    (ValueKind.RAW, PgKind.TEXT): "DECODE({}, 'hex')",
}


class RelationColumn(NamedTuple):
    """A column of a relation.

    Attributes:
        name: the column's name in the target.
        fact: the facts about the column's values in Oracle.
        made: the column's type in the target; None if the column cannot be created, or if its
            values need no conversion.
        pairs: if the column is a flag that is boolean in the target, the texts that mean true and
            false.
        no_flag_setting: if the column is a flag only because of its type, the setting in `apply`
            that prevents the conversion to boolean.
    """

    name: str
    fact: Fact
    made: PgType | None = None
    pairs: BooleanPairs = ()
    no_flag_setting: str = ""

    def reading(self, sql: str) -> tuple[str, str]:
        """Return (SQL of the value in Oracle's form, reason). The reason is empty unless the value
        cannot be converted.
        """
        if self.is_plain:
            return sql, ""
        assert self.made is not None
        cast = _CASTS.get((self.fact.kind, self.made.kind))
        if cast is not None:
            return cast.format(sql), ""
        if self.pairs:
            return self._flag(sql)
        return sql, (
            f"you chose {self.made.name} for its column {self.name}, and olr_pg cannot convert it"
            " back"
        )

    @property
    def is_plain(self) -> bool:
        """Whether Oracle's operators work on the target's value without a conversion."""
        fact = self.fact.kind
        return self.made is None or fact is ValueKind.UNKNOWN or self.made.kind in _KEPT[fact]

    def writing(self, sql: str) -> str:
        """Return SQL that converts a value from Oracle's form to the target's form, for a default
        or generated column.
        """
        if not self.pairs:
            return sql
        found = self._values()
        if sql in found:
            return "TRUE" if found[sql] else "FALSE"
        branches = " ".join(
            f"WHEN {value} THEN {'TRUE' if is_true else 'FALSE'}"
            for value, is_true in found.items()
        )
        return f"(CASE {sql} {branches} END)"

    def _values(self) -> dict[str, bool]:
        if self.fact.kind in (ValueKind.TEXT, ValueKind.CHAR):
            return {literal(text): is_true for text, is_true in flag_texts(self.pairs).items()}
        return {str(number): is_true for number, is_true in flag_numbers(self.pairs).items()}

    def _flag(self, sql: str) -> tuple[str, str]:
        values = self._values()
        if len(values) != 2:
            return sql, (
                f"you chose boolean for its column {self.name}, and a boolean can stand for several"
                f" of {', '.join(values)}: give the column one pair (`boolean-values`)"
            )
        (true, _), (false, _) = values.items()
        return f"(CASE WHEN {sql} THEN {true} WHEN NOT {sql} THEN {false} END)", ""


def reference_obstacle(own: RelationColumn, parent: RelationColumn, parent_name: str) -> str:
    """Return why a foreign key cannot compare two columns: PostgreSQL has no operator = for their
    types that an index supports. The result is empty if PostgreSQL has such an operator.

    Args:
        parent_name: the referenced column as ``OWNER.TABLE.COLUMN``.
    """
    if own.made is None or parent.made is None:
        return ""
    if own.made.kind is not PgKind.NUMERIC or parent.made.kind not in _INTEGERS:
        return ""
    return (
        f"its column {own.name} is {own.made.name}, but refers to {parent.made.name}: choose one"
        f' type for both in `apply.columns`: "{parent_name}": {{"type": "numeric"}}'
    )


def relation_column(
    settings: ApplierSettings, table: str, column: InventoryColumn, name: str
) -> RelationColumn:
    """Return the description of a column of the table ``OWNER.NAME``: its type in the target, and
    the facts about its values in Oracle.
    """
    fact, typed = column_fact(column), typed_column(column)
    is_object = bool(column.type_owner) and not typed.xml
    if is_object or refusal(typed) is not None:
        return RelationColumn(name, fact)
    made = settings.choices.pg_type(table, typed)
    if made.kind in _INTEGERS and fact.kind is ValueKind.NUMBER:
        fact = fact._replace(kind=ValueKind.INTEGER)
    if made.kind is not PgKind.BOOL or fact.kind is ValueKind.BOOLEAN:
        return RelationColumn(name, fact, made)
    policies = settings.choices.policies(table, column.name, settings.policies)
    by_type = settings.choices.is_flag_by_type(table, typed)
    out = no_flag_setting(table, typed) if by_type else ""
    return RelationColumn(name, fact, made, policies.boolean_pairs, out)
