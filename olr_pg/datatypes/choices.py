"""Choices that replace the default type mapping: target types, target names, and the values for
true and false.

The default mapping loses nothing (`mapping`). A choice replaces a column's name or type in the
target. A value that the chosen type cannot hold is an error that names the column (`convert`); it
is never rounded or left out. Only this module decides the name and type of a source column in the
target: load, replication, schema conversion, assessment and checks use it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Literal

from olr_pg.datatypes.mapping import (
    OracleType,
    PgKind,
    PgType,
    fold_identifier,
    oracle_type_name,
    pg_kind,
    pg_type,
)
from olr_pg.datatypes.policies import BOOLEAN_PAIRS
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from olr_pg.datatypes.mapping import OracleColumn
    from olr_pg.datatypes.policies import BooleanPairs, Policies

Integers = Literal["fitting", "integer", "bigint", "numeric"]
PlainNumber = Literal["numeric", "bigint"]
DateType = Literal["timestamp(0)", "date"]
RawSixteen = Literal["bytea", "uuid"]
ClobType = Literal["text", "json", "jsonb", "xml", "bytea"]
BlobType = Literal["bytea", "text", "json", "jsonb"]

_FLAG: Final = "only values for true and false: {pairs}"
_DOCUMENTS: Final = "only JSON: any other text, and an empty LOB, is an error"
_NOTES: Final = {
    PgKind.DATE: "only dates: a time of day is an error",
    PgKind.UUID: "only values of 16 bytes; others are an error",
    PgKind.INT2: "only whole numbers from -32768 to 32767; others are an error",
    PgKind.INT4: "only whole numbers from -2147483648 to 2147483647; others are an error",
    PgKind.INT8: "only whole numbers that bigint can store; others are an error",
    PgKind.FLOAT4: "values are rounded to the nearest float of 4 bytes",
    PgKind.FLOAT8: "values are rounded to the nearest float of 8 bytes",
    PgKind.JSON: _DOCUMENTS,
    PgKind.JSONB: f"{_DOCUMENTS}; spaces, the order of keys and duplicate keys are not preserved",
    PgKind.XML: "only well-formed XML: other text is an error; its declaration loses the encoding",
}
_OF_BLOB: Final = {PgKind.TEXT: "hexadecimal; values of at most half a gigabyte"}
_DIGITS_OF: Final = {"smallint": 4, "integer": 9, "bigint": 18}
"""By integer type, the largest number of decimal digits that always fits."""


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """A choice for the columns whose names match a pattern.

    Attributes:
        type_name: the target type in SQL; empty if no type is chosen.
        name: the column's name in the target; empty if no name is chosen.
        pairs: the values for true and false, if the target type is boolean; empty if none are
            chosen.
    """

    type_name: str = ""
    name: str = ""
    pairs: BooleanPairs = ()


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices for one target: the target type of each Oracle type, names, and choices for
    single columns.

    Attributes:
        integers: the type for NUMBER(p,0) with p up to 18: the smallest integer type that fits
            (``fitting``), at least integer, at least bigint, or numeric(p,0).
        number: the type for NUMBER without precision, and for NUMBER(*,0).
        flags: the types, such as ``NUMBER(1)``, whose columns become boolean.
        date: the type for DATE.
        raw_16: the type for RAW(16).
        clob: the type for CLOB and NCLOB.
        blob: the type for BLOB.
        keep_names: whether names keep their case; otherwise upper-case names become lower case.
        columns: choices by shell pattern of ``OWNER.NAME.COLUMN``. Of the patterns that match a
            column, the first one that sets a property (type, name or pairs) decides this property.
        owners: the name that patterns use for an owner, by the owner; only owners for whom it is
            another name, because there are several containers.
        contexts: the prefix of the PostgreSQL settings that contain the values of an application
            context (SYS_CONTEXT), by the context's name in upper case.
    """

    integers: Integers = "fitting"
    number: PlainNumber = "numeric"
    flags: tuple[str, ...] = ()
    date: DateType = "timestamp(0)"
    raw_16: RawSixteen = "bytea"
    clob: ClobType = "text"
    blob: BlobType = "bytea"
    keep_names: bool = False
    columns: Mapping[str, ColumnChoice] = field(default_factory=dict)
    owners: Mapping[str, str] = field(default_factory=dict)
    contexts: Mapping[str, str] = field(default_factory=dict)

    def name(self, name: str, *, column: bool = False) -> str:
        """Return the target's name for an object that is called `name` in the source."""
        return fold_identifier(name, column=column, keep_case=self.keep_names)

    def column_name(self, table: str, column: str) -> str:
        """Return the target's name of a column of the table ``OWNER.NAME``. Clashes with names of
        other columns are not resolved.
        """
        return self._chosen_name(table, column) or self.name(column, column=True)

    def column_names(self, table: str, columns: Sequence[str]) -> dict[str, str]:
        """Return the target's names of a table's columns, by source name. If folding gives two
        columns the same name, both keep their source names.

        Raises:
            OlrPgError: 5016, a chosen name is also the name of another column.
        """
        names = {column: self.column_name(table, column) for column in columns}
        counts = Counter(names.values())
        for column, name in names.items():
            if counts[name] > 1 and self._chosen_name(table, column):
                both = ", ".join(one for one, other in names.items() if other == name)
                raise OlrPgError(
                    Code.TARGET_NAME_CLASH,
                    f"the columns {both} would all become {name}",
                    table=table,
                )
        return {column: name if counts[name] == 1 else column for column, name in names.items()}

    def _chosen_name(self, table: str, column: str) -> str:
        return next((one.name for one in self._of(table, column) if one.name), "")

    def chosen_type(self, table: str, column: OracleColumn) -> str:
        """Return the type that is chosen for a column by its name; empty if none is chosen."""
        return next((one.type_name for one in self._of(table, column.name) if one.type_name), "")

    def pg_type(self, table: str, column: OracleColumn) -> PgType:
        """Return the PostgreSQL type that a new target column gets.

        Args:
            table: ``OWNER.NAME``.

        Raises:
            OlrPgError: 2055 the Oracle type is not supported; 2054 the chosen type is unknown.
        """
        default = pg_type(column)
        name = self.chosen_type(table, column) or self._of_type(column)
        if not name or name == default.name:
            return default
        kind = pg_kind(name)
        if kind is None:
            raise OlrPgError(
                Code.TYPE_NOT_CONVERTIBLE,
                f"{oracle_type_name(column)} to {name}",
                table=table,
                column=column.name,
            )
        return PgType(name, kind, self._note(table, column, kind, default))

    def is_flag_by_type(self, table: str, column: OracleColumn) -> bool:
        """Return whether a column becomes boolean because of its type, not because of a choice for
        its name.
        """
        return not self.chosen_type(table, column) and self._of_type(column) == "boolean"

    def policies(self, table: str, column: str, general: Policies) -> Policies:
        """Return the policies of a column, including its values for true and false."""
        pairs = next((one.pairs for one in self._of(table, column) if one.pairs), ())
        return replace(general, boolean_pairs=pairs) if pairs else general

    def _of(self, table: str, column: str) -> Iterator[ColumnChoice]:
        if not self.columns:
            return
        owner, _, rest = table.partition(".")
        full = f"{self.owners.get(owner, owner)}.{rest}.{column}"
        for pattern, choice in self.columns.items():
            if fnmatchcase(full, pattern) or fnmatchcase(full, pattern.upper()):
                yield choice

    def _of_type(self, column: OracleColumn) -> str:
        code = column.type_code
        if self.flags and _short_name(column) in self.flags:
            return "boolean"
        if code == OracleType.NUMBER:
            return self._of_number(column)
        if code == OracleType.DATE:
            return self.date
        if code in (OracleType.CLOB, OracleType.BLOB) and not column.xml:
            return self.clob if code == OracleType.CLOB else self.blob
        return self.raw_16 if code == OracleType.RAW and column.length == 16 else ""

    def _of_number(self, column: OracleColumn) -> str:
        precision, scale = column.precision, column.scale
        if precision is None:
            return self.number if self.number != "numeric" and scale in (None, 0) else ""
        if scale is None or scale > 0 or self.integers == "fitting":
            return ""
        digits = precision - scale
        if digits > _DIGITS_OF["bigint"]:
            return ""
        if self.integers == "numeric":
            return f"numeric({digits},0)"
        return self.integers if digits <= _DIGITS_OF[self.integers] else ""

    def _note(self, table: str, column: OracleColumn, kind: PgKind, default: PgType) -> str:
        """Return a note about what the chosen type loses and the default type would keep."""
        if kind is default.kind:
            return default.note
        if kind is PgKind.BOOL:
            pairs = next((one.pairs for one in self._of(table, column.name) if one.pairs), ())
            shown = ", ".join("/".join(pair) for pair in pairs or BOOLEAN_PAIRS)
            return _FLAG.format(pairs=shown)
        if column.type_code == OracleType.BLOB and kind in _OF_BLOB:
            return _OF_BLOB[kind]
        widths = (PgKind.INT2, PgKind.INT4, PgKind.INT8)
        if kind in widths and default.kind in widths:
            wider = widths.index(kind) >= widths.index(default.kind)
            return default.note if wider else _NOTES[kind]
        return _NOTES.get(kind, default.note)


def _short_name(column: OracleColumn) -> str:
    """Return the type's name as in `flags`: ``NUMBER(1)``, ``CHAR(1)``, ``VARCHAR2(1)``."""
    code = column.type_code
    if code == OracleType.NUMBER:
        return f"NUMBER({column.precision})" if column.scale == 0 else ""
    if code not in (OracleType.CHAR, OracleType.VARCHAR2):
        return ""
    length = column.length if column.char_length is None else column.char_length
    return f"{OracleType(code).title}({length})"


DEFAULT_CHOICES: Final = Choices()
