"""Defines the sections that say what of the tables is delivered, and in which form.

The section `filter` names tables, columns, rows, operations and transactions that are not
delivered. The sections `apply.types`, `apply.columns` and `apply.policies` give the form that
source columns have in the target.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from olr_pg.conditions.parse import parse_condition
from olr_pg.config.fields import Section, Timezone, problem
from olr_pg.datatypes.choices import (
    BlobType,
    ClobType,
    ColumnChoice,
    DateType,
    Integers,
    PlainNumber,
    RawSixteen,
)
from olr_pg.datatypes.mapping import IDENTIFIER_BYTES_MAX, pg_kind
from olr_pg.datatypes.policies import (
    BOOLEAN_PAIRS,
    BooleanPairs,
    Calendar,
    Fraction,
    Infinity,
    InvalidDate,
    Nul,
    Undecodable,
)
from olr_pg.errors import OlrPgError

Patterns = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(strict=False)]
"""Shell patterns with *, ? and [abc]."""

Operations = Annotated[
    tuple[Literal["insert", "update", "delete"], ...], Field(strict=False, min_length=1)
]

Xids = Annotated[tuple[Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")], ...], Field(strict=False)]


class TableFilter(Section):
    """`filter.tables`: which tables of a TableList are not delivered."""

    include: Patterns = Field(
        default=(),
        description="patterns of OWNER.NAME; only tables that match are delivered; empty: all"
        " tables",
    )
    exclude: Patterns = Field(
        default=(),
        description="patterns of OWNER.NAME; tables that match are excluded, even if `include`"
        " matches them",
    )


def _condition(text: str) -> str:
    try:
        parse_condition(text)
    except OlrPgError as error:
        raise problem(
            f"a condition of rows ({error.label} {error.detail})", show="nothing"
        ) from None
    return text


class RowFilter(Section):
    """An entry of `filter.rows`: which rows of some tables are delivered."""

    table: str = Field(min_length=1, description="a pattern of OWNER.NAME")
    where: Annotated[str, AfterValidator(_condition)] = Field(
        description="the condition that rows must fulfil, in Oracle's SQL: comparisons of columns"
        " with literals, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL"
    )


RowFilters = Annotated[tuple[RowFilter, ...], Field(strict=False)]


class TransactionFilter(Section):
    """`filter.transactions`: which transactions are not delivered, by user, machine, program or
    XID.
    """

    login_users: Patterns = Field(
        default=(),
        description="patterns; a transaction is excluded if one matches the login name of its"
        " session",
    )
    os_users: Patterns = Field(
        default=(),
        description="patterns; a transaction is excluded if one matches the operating system user"
        " of the client",
    )
    machines: Patterns = Field(
        default=(),
        description="patterns; a transaction is excluded if one matches the machine name of the"
        " client",
    )
    programs: Patterns = Field(
        default=(),
        description="patterns; a transaction is excluded if one matches the program name of the"
        " client",
    )
    client_ids: Patterns = Field(
        default=(),
        description="patterns; a transaction is excluded if one matches the client identifier of"
        " its session",
    )
    xids: Xids = Field(
        default=(), description="transaction IDs, as usn.slot.sequence, of transactions to exclude"
    )


class Filter(Section):
    """`filter`: tables, columns, rows, operations and transactions that no target receives."""

    tables: TableFilter = Field(
        default_factory=TableFilter, description="an object: the tables that are delivered"
    )
    columns: dict[str, Patterns] = Field(
        default_factory=dict,
        description=(
            "an object that maps patterns of OWNER.NAME to lists of patterns of column"
            " names: these columns are excluded"
        ),
    )
    operations: dict[str, Operations] = Field(
        default_factory=dict,
        description=(
            "an object that maps patterns of OWNER.NAME to lists of operations: these"
            " operations are excluded"
        ),
    )
    rows: RowFilters = Field(
        default=(),
        description="a list of objects: conditions on rows; a row must fulfil all conditions whose"
        " pattern matches its table",
    )
    transactions: TransactionFilter = Field(
        default_factory=TransactionFilter, description="an object: the transactions to exclude"
    )


_TYPE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_ .,()\[\]-]*")
_DEFAULT_PAIRS: Final = tuple("/".join(pair) for pair in BOOLEAN_PAIRS)


class ValuePolicies(Section):
    """`apply.policies`: what to do with values that PostgreSQL cannot store unchanged.

    The keys are the attributes of `olr_pg.datatypes.policies.Policies`.
    """

    undecodable: Undecodable = Field(
        default="replace",
        description="bytes that are not valid in the character set of their column",
    )
    nul: Nul = Field(default="remove", description="U+0000 in text")
    infinity: Infinity = Field(default="keep", description="infinite values of NUMBER columns")
    fraction: Fraction = Field(default="truncate", description="nanoseconds")
    calendar: Calendar = Field(
        default="label",
        description="29 February of years that are leap years only in the Julian calendar",
    )
    invalid_date: InvalidDate = Field(
        default="error",
        description="dates and times that do not exist, such as 0000-00-00 or a month 13",
    )
    char_blanks: bool = Field(
        default=False,
        description="true: keep the trailing spaces of CHAR values, if the target's column is not"
        " character(n)",
    )
    local_timezone: Timezone | None = Field(
        default=None,
        description="the time zone in which DATE and TIMESTAMP values are read, if the target's"
        " column is timestamptz",
    )


def _pairs(texts: tuple[str, ...]) -> tuple[str, ...]:
    seen = set[str]()
    for text in texts:
        true, slash, false = text.partition("/")
        if not (slash and true and false) or "/" in false:
            raise problem('pairs of a value for true and a value for false, such as "Y/N"')
        if {true, false} & seen or true == false:
            raise problem(f"each value in only one pair, but {text!r} is in several")
        seen |= {true, false}
    return texts


Pairs = Annotated[tuple[str, ...], Field(strict=False), AfterValidator(_pairs)]
"""Texts such as "Y/N", with the value that means true before the slash, and the value that means
false after it.
"""


def pairs_of(texts: tuple[str, ...]) -> BooleanPairs:
    """Return the pairs in the form that `olr_pg.datatypes` uses."""
    return tuple((text.partition("/")[0], text.partition("/")[2]) for text in texts)


def _type_name(name: str) -> str:
    if pg_kind(name) is None or not _TYPE.fullmatch(name):
        raise problem(
            "a supported PostgreSQL type, such as numeric(12,2), bigint, text, boolean,"
            f" date, timestamptz, uuid or jsonb, but {name!r} is not one",
            show="nothing",
        )
    return name


def _column_name(name: str) -> str:
    if not name or len(name.encode()) > IDENTIFIER_BYTES_MAX or "\0" in name:
        raise problem(f"a name of 1 to {IDENTIFIER_BYTES_MAX} bytes")
    return name


def _flag_type(name: str) -> str:
    if name not in ("NUMBER(1)", "CHAR(1)", "VARCHAR2(1)"):
        raise problem("NUMBER(1), CHAR(1) or VARCHAR2(1)")
    return name


Flags = Annotated[tuple[Annotated[str, AfterValidator(_flag_type)], ...], Field(strict=False)]


class TypesSection(Section):
    """`apply.types`: the PostgreSQL types of new tables, if they differ from the default."""

    integers: Integers = Field(
        default="fitting",
        description="NUMBER(p,0) with p up to 18. `fitting`: the smallest of smallint, integer and"
        " bigint that holds all values; `integer`: the same without smallint; `bigint`; `numeric`",
    )
    number: PlainNumber = Field(
        default="numeric",
        description="NUMBER without precision, NUMBER(*,0), INTEGER; with `bigint`, a fraction or"
        " too many digits is an error",
    )
    date: DateType = Field(
        default="timestamp(0)", description="DATE; with `date`, a time of day is an error"
    )
    raw_16: RawSixteen = Field(default="bytea", description="RAW(16)")
    clob: ClobType = Field(
        default="text",
        description="CLOB and NCLOB; with `json`, `jsonb` and `xml`, a text that is not such a"
        " document is an error; `bytea` contains the text in UTF-8, with U+0000",
    )
    blob: BlobType = Field(
        default="bytea",
        description="BLOB; `text` is hexadecimal, `json` and `jsonb` accept documents in UTF-8",
    )
    boolean: Flags = Field(
        default=(),
        description="a list of Oracle types whose columns become boolean: NUMBER(1), CHAR(1),"
        " VARCHAR2(1)",
    )
    boolean_values: Pairs = Field(
        default=_DEFAULT_PAIRS,
        description="a list of pairs of a value for true and a value for false, case-sensitive."
        " Columns of NUMBER use only the pairs of numbers, or 1/0 if no pair has"
        " numbers. Any other value is an error",
    )


class ColumnSection(Section):
    """An entry of `apply.columns`: settings for the columns that match its pattern."""

    type: Annotated[str, AfterValidator(_type_name)] | None = Field(
        default=None, description="the type of new target columns"
    )
    name: Annotated[str, AfterValidator(_column_name)] | None = Field(
        default=None, description="the name of the target column, as it is in PostgreSQL"
    )
    boolean_values: Pairs = Field(
        default=(),
        description="pairs of values for true and false; they replace `types.boolean-values`",
    )

    @property
    def choice(self) -> ColumnChoice:
        """The entry in the form that `olr_pg.datatypes` uses."""
        return ColumnChoice(self.type or "", self.name or "", pairs_of(self.boolean_values))
