"""A source some of whose rows cannot be decoded: they have a column that no dictionary knows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.simulator.sessions.sys_dictionary import sys_cell
from tests.replicator.ddl_source import NUMBER, TEXT, DdlSource

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot


LEFT = [("A", 1), ("B", 1), ("B", 2), ("B", 3), ("A", 4), ("A", 6), ("B", 4), ("A", 8)]
"""What can be decoded of `FaultSource.history`, in commit order: table and ID."""


class FaultSource:
    """Tables A and B (ID, NAME); the dictionary does not know the NAME of A.

    A row of A without a name is stored without that column, and fits.
    """

    def __init__(self, directory: Path, *, followed: bool = False, threads: int = 1) -> None:
        self.source = DdlSource(directory, followed=followed, threads=threads, log_blocks=26)
        for name in ("A", "B"):
            self.source.create(name, {"ID": NUMBER, "NAME": TEXT})
        self.source.take_snapshot()
        self.snapshot = self._narrowed()
        write_snapshot(self.snapshot, str(directory / "dictionary.json"))

    def _narrowed(self) -> Snapshot:
        assert self.source.snapshot is not None
        tables = tuple(
            replace(table, columns=table.columns[:1]) if table.name == "A" else table
            for table in self.source.snapshot.tables
        )
        return replace(self.source.snapshot, tables=tables)

    def transaction(self, *rows: tuple[str, int, str | None], rolled_back: bool = False) -> None:
        """Insert rows in one transaction: (table, ID, NAME)."""
        session = self.source.session
        for name, key, value in rows:
            assert (
                session.insert(self.source.tables[name], [sys_cell(key), sys_cell(value)])
                is not None
            )
        if rolled_back:
            session.rollback()
        else:
            session.commit()

    def history(self) -> None:
        """Three faulty transactions; of A the rows 1, 4, 6 and 8 can be decoded, of B 1 to 4.

        What is undone does no harm.
        """
        self.transaction(("A", 1, None))
        self.transaction(("A", 50, "rolled back"), ("B", 51, "too"), rolled_back=True)
        session = self.source.session
        self.transaction(("B", 1, "before"))
        session.begin_empty()
        mark = session.savepoint()
        assert (
            session.insert(self.source.tables["A"], [sys_cell(60), sys_cell("undone")]) is not None
        )
        session.rollback_to(mark)
        self.transaction(("B", 2, "kept"))
        self.transaction(("A", 2, None), ("B", 3, "beside"), ("A", 3, "secret"))
        self.transaction(("A", 4, None))
        self.transaction(("A", 5, "alone"))
        self.transaction(("A", 6, None), ("B", 4, "last"))
        self.transaction(("A", 7, "again"))
        self.transaction(("A", 8, None))
        self.source.finish()
