"""A column as Oracle's SQL reads it, out of a column of the target whose type may be a choice.

Where the target's column is of another kind than Oracle's, an expression that names it gets the
value back as Oracle has it: of a boolean that was a flag ``CASE WHEN … THEN 'Y' …``, of a day that
was a DATE its midnight. Where that cannot be told, the expression is refused with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.applier.target.column_encoder import no_flag_setting
from olr_pg.datatypes.boolean import flag_numbers, flag_texts
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
    ValueKind.RAW: frozenset({PgKind.BYTEA, PgKind.XML}),
    ValueKind.BOOLEAN: frozenset({PgKind.BOOL}),
    ValueKind.XML: frozenset({PgKind.XML}),
}
"""The kinds of target columns that Oracle's operators find what they expect in."""

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
    """A column.

    Attributes:
        name: in the target.
        fact: what its values are to Oracle.
        made: its type in the target; None where it cannot be made.
        pairs: what stands for true and false, of a flag that is boolean in the target.
        no_flag_setting: of a flag that is one for its type alone, what in `apply` makes it none.
    """

    name: str
    fact: Fact
    made: PgType | None = None
    pairs: BooleanPairs = ()
    no_flag_setting: str = ""

    def reading(self, sql: str) -> tuple[str, str]:
        """Return the value as Oracle has it, and why that cannot be told, where it cannot."""
        if self.is_plain:
            return sql, ""
        assert self.made is not None
        cast = _CASTS.get((self.fact.kind, self.made.kind))
        if cast is not None:
            return cast.format(sql), ""
        if self.pairs:
            return self._flag(sql)
        return sql, f"its column {self.name} is {self.made.name} by choice"

    @property
    def is_plain(self) -> bool:
        """Tell whether the target has the value as Oracle's operators expect it."""
        fact = self.fact.kind
        return self.made is None or fact is ValueKind.UNKNOWN or self.made.kind in _KEPT[fact]

    def writing(self, sql: str) -> str:
        """Return the target's value of an Oracle value, for a default or generated column."""
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
                f"its column {self.name} is boolean by choice, and of {', '.join(values)} nobody"
                " knows which its values were: give it one pair (`boolean-values`)"
            )
        (true, _), (false, _) = values.items()
        return f"(CASE WHEN {sql} THEN {true} WHEN NOT {sql} THEN {false} END)", ""


def reference_obstacle(own: RelationColumn, parent: RelationColumn, parent_name: str) -> str:
    """Say why a foreign key cannot join two columns: PostgreSQL has no = that its index knows.

    Args:
        parent_name: ``OWNER.TABLE.COLUMN`` of what is referred to.
    """
    if own.made is None or parent.made is None:
        return ""
    if own.made.kind is not PgKind.NUMERIC or parent.made.kind not in _INTEGERS:
        return ""
    return (
        f"its column {own.name} is {own.made.name} and refers to a {parent.made.name}: choose one"
        f' type for both in `apply.columns`: "{parent_name}": {{"type": "numeric"}}'
    )


def relation_column(
    settings: ApplierSettings, table: str, column: InventoryColumn, name: str
) -> RelationColumn:
    """Tell what a column of ``OWNER.NAME`` is in the target, and to Oracle."""
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
