"""A statement of the target's schema, and the order in which the kinds can run."""

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
"""In the order in which they run; each is a file, numbered by its place."""

INDEXES: Final = frozenset(("unique key", "index"))
"""What a value may be too long for: it comes behind the rows, so that it keeps none of them out."""

BEFORE_DATA: Final = frozenset(KINDS[: KINDS.index("index")]) - INDEXES
"""What is there before the rows are; the rest comes behind them."""


class Statement(NamedTuple):
    """A statement for the target, or an object of the source for which there is none.

    Attributes:
        kind: of `KINDS`.
        name: ``OWNER.NAME`` of the source, with the column where it is one's.
        sql: for PostgreSQL; empty where nothing can be said.
        reason: why it does not run; empty where it does.
        source: what it came from, in Oracle's words, where that is text.
        present: a query that tells whether the target has it: one boolean.
        what: the source's kind of object, where `kind` does not say it.
        remark: what is otherwise in the target, of a statement that runs.
        trial: a query that a trial runs behind it, which must not fail by its form.
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
        """Tell whether it is a statement to run."""
        return bool(self.sql) and not self.reason

    def refused(self, reason: str) -> Statement:
        """Return it as one that does not run."""
        return self._replace(reason=reason)
