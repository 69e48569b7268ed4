"""The error catalogue: every failure that the appliance can report, under a stable code.

The thousand tells the area: 1 configuration and command line, 2 logs and redo, 3 dictionary and
TableList, 4 protocol and server, 5 PostgreSQL and the applier, 6 Spark and Java, 7 the live Oracle
source, 8 simulator. A code never changes its meaning and is never used again.

An error says what went wrong (the message), where (`where`, an ordered mapping such as
``thread``, ``sequence``, ``block``, ``offset``, ``xid``, ``table``, ``column``) and what to do
(`action`, from the catalogue unless the place that raises knows better).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """One line of the catalogue.

    Attributes:
        title: what went wrong, without the particulars.
        action: what the reader should do about it.
        exit_code: the exit code of the command that ends with this error (1–125).
    """

    title: str
    action: str
    exit_code: int = 1


CATALOGUE: Final[dict[int, ErrorEntry]] = {
    # 1xxx configuration and command line (exit code 2)
    1001: ErrorEntry(
        "the configuration file cannot be read",
        "check the path given with --config and that this user may read it",
        2,
    ),
    1002: ErrorEntry(
        "the configuration is not valid",
        "correct the keys named above; configs/ holds a commented example of each kind",
        2,
    ),
    1003: ErrorEntry(
        "a secret cannot be resolved",
        "set the environment variable, or make the file readable, that the configuration names",
        2,
    ),
    # 2xxx logs and redo (exit code 3)
    2001: ErrorEntry(
        "no archived log was found",
        "check `source.logs` (or the LOG arguments): files, directories or globs that hold"
        " archived logs",
        3,
    ),
    2002: ErrorEntry(
        "the file cannot be read",
        "check that the file exists and that this user may read it",
        3,
    ),
    2003: ErrorEntry(
        "the file is not an Oracle redo log",
        "give archived redo logs only; a compressed or encrypted copy must be unpacked first",
        3,
    ),
    2004: ErrorEntry(
        "the log is truncated",
        "copy the archived log again, whole; compare its size with V$ARCHIVED_LOG"
        " ((BLOCKS + 1) * BLOCK_SIZE)",
        3,
    ),
    2005: ErrorEntry(
        "a block of the log is corrupt",
        "copy the archived log again from another destination or restore it with RMAN"
        " (RESTORE ARCHIVELOG SEQUENCE n THREAD t)",
        3,
    ),
    2006: ErrorEntry(
        "a redo record of the log is malformed",
        "copy the archived log again; if the copy is good, report the error with the position"
        " above",
        3,
    ),
    2007: ErrorEntry(
        "this redo version is not supported",
        "use logs of Oracle 11.2 to 23ai (COMPATIBLE 11.2.0 to 23.x)",
        3,
    ),
    2008: ErrorEntry(
        "the log was copied while it was being written",
        "archive the log (ALTER SYSTEM ARCHIVE LOG CURRENT) and copy it again",
        3,
    ),
    2009: ErrorEntry(
        "the log belongs to another database or incarnation",
        "remove the file from the set of logs, or use the dictionary of its own database",
        3,
    ),
    2010: ErrorEntry(
        "a log is missing from the sequence",
        "restore the missing archived log (RESTORE ARCHIVELOG SEQUENCE n THREAD t)"
        " and put it beside the others",
        3,
    ),
    2011: ErrorEntry(
        "a change cannot be decoded",
        "report the error with the position above; the table can be left out of the"
        " subscription meanwhile",
        3,
    ),
    2012: ErrorEntry(
        "two logs claim the same place in the redo stream",
        "keep one copy of each thread, sequence and resetlogs id",
        3,
    ),
    # 3xxx dictionary and TableList (exit code 4)
    # 4xxx protocol and server (exit code 5)
    # 5xxx PostgreSQL and the applier (exit code 6)
    5001: ErrorEntry(
        "the folder of the embedded PostgreSQL cannot be used",
        "give a folder of its own (`context.data`) that this user may write, empty or made by an"
        " earlier run; root needs a user `nobody` and a writable /var/lib",
        6,
    ),
    5002: ErrorEntry(
        "the embedded PostgreSQL does not run",
        "read the server log named above; or give the connection string of a server of your own"
        " in `apply.connect-string`",
        6,
    ),
    5003: ErrorEntry(
        "PostgreSQL cannot be reached",
        "check `apply.connect-string`, that the server runs, and that it lets this user in",
        6,
    ),
    5004: ErrorEntry(
        "the PostgreSQL role lacks a privilege",
        "run sql/postgres/role.sql as a superuser; it holds the minimal grants",
        6,
    ),
    5005: ErrorEntry(
        "a target table is missing",
        "create the table in PostgreSQL, correct the table mapping, or set `apply.create-tables`",
        6,
    ),
    5006: ErrorEntry(
        "a target column is missing",
        "add the column to the PostgreSQL table, or correct the column's name",
        6,
    ),
    5007: ErrorEntry(
        "a source column cannot go into the target column's type",
        "change the column's type in PostgreSQL to one that the type mapping allows",
        6,
    ),
    5008: ErrorEntry(
        "a change was refused by PostgreSQL",
        "read the offending change in olr_pg.error; mend the target table, then start again:"
        " the table goes on with that transaction",
        6,
    ),
    5009: ErrorEntry(
        "a change conflicts with the rows in the target table",
        "compare the row named in olr_pg.error with the source; mend it, or choose"
        " `apply.conflict` skip or overwrite",
        6,
    ),
    5010: ErrorEntry(
        "tables stopped with an error",
        "the others were applied; mend what olr_pg.error says about these and start again",
        6,
    ),
    5011: ErrorEntry(
        "the replication server cannot be reached",
        "check `target.address` and that the server runs",
        6,
    ),
    5012: ErrorEntry(
        "the replication server answered with an error",
        "do what its message says",
        6,
    ),
    5013: ErrorEntry(
        "the answers of the replication server are malformed",
        "report the error with the position above",
        6,
    ),
    5014: ErrorEntry(
        "this PostgreSQL version is not supported",
        "use PostgreSQL 15 or later",
        6,
    ),
    5015: ErrorEntry(
        "the applier's ledger cannot be used",
        "run sql/postgres/ledger.sql with the schema's owner, or let the role create it",
        6,
    ),
    5016: ErrorEntry(
        "two source tables or columns have the same name in PostgreSQL",
        "give one of them another name in the mapping",
        6,
    ),
    5017: ErrorEntry(
        "a value cannot be expressed in PostgreSQL",
        "change the target column's type, or choose another policy for such values",
        6,
    ),
    # 6xxx Spark and Java (exit code 7)
    # 7xxx the live Oracle source (exit code 8)
    # 8xxx simulator (exit code 9)
}

Place = str | int


class OlrPgError(Exception):
    """A failure from the catalogue.

    Args:
        code: a key of `CATALOGUE`.
        detail: the particulars, one sentence without a final full stop.
        action: overrides the catalogue's advice where the raiser knows better.
        where: the place, as keyword arguments in the order to print them.

    Raises:
        KeyError: `code` is not in the catalogue (a bug of the caller).
    """

    def __init__(
        self, code: int, detail: str, /, *, action: str | None = None, **where: Place | None
    ) -> None:
        entry = CATALOGUE[code]
        self.code = code
        self.title = entry.title
        self.detail = detail
        self.action = action or entry.action
        self.exit_code = entry.exit_code
        self.where: dict[str, Place] = {k: v for k, v in where.items() if v is not None}
        super().__init__(str(self))

    @property
    def label(self) -> str:
        """The code as it is printed: ``OLR-02005``."""
        return f"OLR-{self.code:05d}"

    def __str__(self) -> str:
        place = ", ".join(f"{key} {value}" for key, value in self.where.items())
        return f"{self.label}: {self.title}: {self.detail}" + (f" [{place}]" if place else "")

    def __reduce__(self) -> tuple[object, ...]:
        # Spark tasks send their errors to the driver by pickle; keyword-only arguments need help.
        return (_rebuild, (self.code, self.detail, self.action, self.where))


def _rebuild(code: int, detail: str, action: str, where: dict[str, Place]) -> OlrPgError:
    return OlrPgError(code, detail, action=action, **where)
