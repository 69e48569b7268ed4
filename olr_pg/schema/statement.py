"""Defines a converted statement for the target's schema, and the order in which kinds of statements
run.
"""

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
"""The kinds of statements, in the order in which they run. Each kind has a file, whose number is
the kind's position here.
"""

INDEXES: Final = frozenset(("unique key", "index"))
"""Kinds of statements that create an index. They run after the initial load, because with an index,
the load would reject rows with values that are too long for it.
"""

BEFORE_DATA: Final = frozenset(KINDS[: KINDS.index("index")]) - INDEXES
"""Kinds of statements that run before the initial load; the other kinds run after it."""


class Statement(NamedTuple):
    """A statement for the target, or an object of the source that has no statement.

    Attributes:
        kind: one of `KINDS`.
        name: the object's name in the source, ``OWNER.NAME``; with the column, if it is about a
            column.
        sql: the SQL for PostgreSQL; empty if there is no translation.
        reason: why the statement cannot run; empty if it can.
        source: the Oracle SQL from which it was translated; empty if there is none.
        present: a query that checks whether the target already has the object; it returns one
            boolean.
        alike: if `present` ignores properties of the object, a query that checks whether these are
            the same, too.
        what: the kind of object in the source, if it differs from `kind`.
        remark: how the object in the target differs from the source, if the statement can run.
        trial: a query that a trial runs after the statement, to check that the created object
            works.
        calls: names of the routines that the object calls.
        role: the role that gets the privilege of a grant; empty for PUBLIC.
    """

    kind: str
    name: str
    sql: str
    reason: str = ""
    source: str = ""
    present: str = ""
    alike: str = ""
    what: str = ""
    remark: str = ""
    role: str = ""
    trial: str = ""
    calls: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether the statement can run."""
        return bool(self.sql) and not self.reason

    def refused(self, reason: str) -> Statement:
        """Return a copy that cannot run, with this reason."""
        return self._replace(reason=reason)
