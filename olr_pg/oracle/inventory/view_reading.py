"""Reads rows of the dictionary views for the inventory."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import oracledb
import sqlalchemy.exc
from sqlalchemy import Column, Integer, MetaData, String, Table, select
from sqlalchemy.sql.elements import quoted_name

from olr_pg.oracle.dictionary_queries import BATCH
from olr_pg.oracle.driver.driver_failures import PRIVILEGE, oracle_error
from olr_pg.oracle.tables import among

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection

    from olr_pg.oracle.inventory.dictionary_views import DictionaryView

Row = dict[str, Any]

OWNER: Final = "OWNER_"
"""The key under which every row contains the owner, whatever the name of the column is."""


class ViewReader:
    """Reads the views that the account has access to.

    Args:
        owners: the schemas to read.
        release: Oracle's release, such as 19.

    Attributes:
        unread: names of the views that the account cannot read.
        tells_all: False after access to a ``DBA_`` view was denied, because the ``ALL_`` views do
            not show all objects.
    """

    def __init__(self, connection: Connection, owners: Sequence[str], release: int) -> None:
        self._connection = connection
        self._owners = owners
        self._release = release
        self.unread = list[str]()
        self.tells_all = True

    def rows(self, view: DictionaryView) -> list[Row]:
        """Read a view, in its ``DBA_`` form if the account may; a text that is NULL becomes an
        empty string.
        """
        if self._release < view.since:
            return []
        for prefix in ("DBA_",) if view.only_dba else ("DBA_", "ALL_"):
            prefix = "" if view.whole_name else prefix
            owner = view.all_owner if prefix == "ALL_" and view.all_owner else view.owner
            try:
                return self._read(prefix + view.name, owner, view)
            except (sqlalchemy.exc.DBAPIError, oracledb.Error) as error:
                if oracle_error(error, "").code != PRIVILEGE:
                    raise
                self.tells_all = False
        self.unread.append(view.full_name)
        return []

    def _read(self, name: str, owner: str, view: DictionaryView) -> list[Row]:
        newer = view.newer.split() if self._release < 12 else ()
        numbers = [column for column in view.numbers.split() if column not in newer]
        texts = [column for column in view.texts.split() if column not in newer]
        table = _view(name, [owner, *texts], numbers)
        columns = [table.c[column] for column in (*texts, *numbers)]
        found = list[Row]()
        for at in range(0, len(self._owners), BATCH):
            wanted = among(self._owners[at : at + BATCH])
            query = select(table.c[owner].label(OWNER), *columns).where(table.c[owner].in_(wanted))
            for row in self._connection.execute(query).mappings():
                read = dict(row)
                found.append(read | {text: _text(read[text]) for text in texts})
        return found


def _view(name: str, texts: Iterable[str], numbers: Iterable[str]) -> Table:
    columns: list[Column[Any]] = [
        *(Column(quoted_name(text, quote=True), String) for text in texts),
        *(Column(quoted_name(number, quote=True), Integer) for number in numbers),
    ]
    return Table(quoted_name(name, quote=True), MetaData(), *columns)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[str, ...], list[Row]]:
    """Group rows by their owner and these columns."""
    found = defaultdict[tuple[str, ...], list[Row]](list)
    for row in rows:
        found[row[OWNER], *(row[name] for name in names)].append(row)
    return found
