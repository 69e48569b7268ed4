"""A converted statement for the target's schema, and the order of the kinds of statements."""

from __future__ import annotations

from typing import Final, NamedTuple

KINDS: Final = (
    "schema",
    "sequence",
    "table",
    "partition",
    "primary key",
    "unique key",
    "generated column",
    "default",
    "check",
    "comment",
    "index",
    "foreign key",
    "view",
    "view comment",
    "materialized view",
    "function",
    "procedure",
    "trigger",
    "grant",
    "by hand",
)
"""The kinds in the order in which they run; each has its own file, numbered by its position
here."""

INDEXES: Final = frozenset(("unique key", "index"))
"""Kinds that fail if a value is too long for an index; they run after the load, so that no row is
rejected."""

BEFORE_DATA: Final = frozenset(KINDS[: KINDS.index("index")]) - INDEXES
"""Kinds that are created before the rows are loaded; the other kinds run after the load."""


class Statement(NamedTuple):
    """A statement for the target, or an object of the source that has no statement.

    Attributes:
        kind: one of `KINDS`.
        name: ``OWNER.NAME`` in the source, with the column for a column's statement.
        sql: for PostgreSQL; empty if there is no translation.
        reason: why the statement does not run; empty if it runs.
        source: the Oracle text that it was translated from, if any.
        present: a query that tells whether the target already has the object: one boolean.
        what: the source's kind of object, if it differs from `kind`.
        remark: how the target differs, for a statement that runs.
        trial: a query that a trial runs after the statement to check its form.
        calls: names of the routines that it calls.
        role: the role that a grant names; empty for PUBLIC.
    """

    kind: str
    name: str
    sql: str
    reason: str = ""
    source: str = ""
    present: str = ""
    what: str = ""
    remark: str = ""
    role: str = ""
    trial: str = ""
    calls: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        """Return whether the statement can run."""
        return bool(self.sql) and not self.reason

    def refused(self, reason: str) -> Statement:
        """Return a copy that does not run, with the reason."""
        return self._replace(reason=reason)
