"""Defines the section `filter`: tables, columns, rows, operations and transactions that are not
delivered.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from olr_pg.conditions.parse import parse_condition
from olr_pg.config.fields import Section, problem
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
