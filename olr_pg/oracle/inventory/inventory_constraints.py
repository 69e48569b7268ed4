"""Reads the constraints of an inventory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from olr_pg.dictionary.inventory import Constraint, ConstraintKind
from olr_pg.oracle.inventory import dictionary_views as views
from olr_pg.oracle.inventory.view_reading import OWNER, grouped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.oracle.inventory.view_reading import Row, ViewReader

_KINDS: Final[dict[str, ConstraintKind]] = {
    "P": "primary key",
    "U": "unique",
    "R": "foreign key",
    "C": "check",
}
_NOT_NULL: Final = re.compile(r'\s*"[^"]+"\s+IS\s+NOT\s+NULL\s*', re.IGNORECASE)


def read_constraints(reader: ViewReader) -> Iterator[Constraint]:
    """Read the constraints with their columns; for a foreign key also the referenced columns."""
    columns = {
        name: tuple(row["COLUMN_NAME"] for row in sorted(rows, key=lambda row: _position(row)))
        for name, rows in grouped(reader.rows(views.CONS_COLUMNS), "CONSTRAINT_NAME").items()
    }
    rows = {(row[OWNER], row["CONSTRAINT_NAME"]): row for row in reader.rows(views.CONSTRAINTS)}
    for name, row in sorted(rows.items(), key=lambda item: (item[1]["TABLE_NAME"], item[0])):
        parent_name = row["R_OWNER"], row["R_CONSTRAINT_NAME"]
        parent = rows.get(parent_name)
        condition = row["SEARCH_CONDITION"].strip()
        yield Constraint(
            owner=name[0],
            name=name[1],
            table=row["TABLE_NAME"],
            kind=_KINDS.get(row["CONSTRAINT_TYPE"], "other"),
            oracle_kind=row["CONSTRAINT_TYPE"],
            columns=columns.get(name, ()),
            condition=condition,
            enabled=row["STATUS"] == "ENABLED",
            validated=row["VALIDATED"] == "VALIDATED",
            deferrable=row["DEFERRABLE"] == "DEFERRABLE",
            deferred=row["DEFERRED"] == "DEFERRED",
            generated_name=row["GENERATED"] == "GENERATED NAME",
            parent_owner=row["R_OWNER"],
            parent_table=parent["TABLE_NAME"] if parent else "",
            parent_columns=columns.get(parent_name, ()) if parent else (),
            delete_rule=row["DELETE_RULE"],
            index=row["INDEX_NAME"],
            not_null=_NOT_NULL.fullmatch(condition) is not None,
        )


def _position(row: Row) -> int:
    """Return a column's position in the constraint; columns of a check constraint have no
    position.
    """
    return int(row["POSITION"] or 0)
