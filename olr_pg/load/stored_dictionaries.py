"""Stores the dictionaries that a later `olr-pg run` needs, before Oracle loses their undo.

A run reads redo from the start SCN of the oldest load that replication has not reached, or from its
checkpoint. It needs the dictionary of all listed tables as of that SCN: with a later one, changes
before a MOVE or TRUNCATE would be lost. A load can take days, and a copy by another tool longer. So
each load stores the dictionary as of its start SCN. A table that is added to the list later is
added to the stored dictionaries too, as long as Oracle has the undo. Otherwise the table cannot be
added until replication has passed these SCNs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import structlog

from olr_pg.appliance.open_source import DICTIONARY
from olr_pg.appliance.target import data_directory, target_path
from olr_pg.applier.session.handover import begin_again, read_pending
from olr_pg.applier.target.catalogue import relation_exists
from olr_pg.applier.target.connection import connect
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.table_data import Present
from olr_pg.server.checkpoint import FILE_NAME, read_saved

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.config.model import Config
    from olr_pg.load.table_data import TableSource

_log = structlog.get_logger(__name__)


def dictionaries_of(
    config: Config, source: TableSource, settings: ApplierSettings
) -> StoredDictionaries:
    """Return the stored dictionaries of a configuration that has one target."""
    path = data_directory(config) / DICTIONARY
    saved = read_saved(target_path(config) / FILE_NAME).scn
    return StoredDictionaries(source, path, settings.connect_string, settings.subscription, saved)


class StoredDictionaries(NamedTuple):
    """The stored dictionaries of a subscription.

    Attributes:
        source: the source, with the list of tables that a run will have.
        path: the file of the dictionary of a run.
        target: the connection string of the target.
        saved: the SCN of the checkpoint; None without one.
    """

    source: TableSource
    path: Path
    target: str
    subscription: str
    saved: int | None

    def store_begin(self) -> None:
        """Store the dictionary for a load that begins now. Call this function before the load is
        recorded, so that no load is without its dictionary after a kill.
        """
        if self.source.moment is not None:
            scn = self.source.moment.start_scn
            self.source.store_dictionary(self.path, scn, Present.AS_OF_ROWS)

    def store(self, scns: Iterable[int]) -> None:
        """Store the dictionary for each start SCN of a load, unless it is stored. Log a warning if
        it lacks tables.
        """
        for scn in sorted(set(scns)):
            lacking = self.source.store_dictionary(self.path, scn)
            if lacking:
                _log.warning(
                    "a dictionary that `run` needs lacks tables: Oracle has no undo for its SCN, or"
                    " the tables were created later",
                    scn=scn,
                    tables=list(lacking),
                )

    def store_claimed(self, scn: int) -> None:
        """Store the dictionary for a copy whose SCNs an operator has named.

        Raises:
            OlrPgError: 5119, Oracle has no undo for the SCN, and changes of other tables since then
                will be read again too, so their dictionary cannot be replaced by the present one.
                Or a listed table was created after the SCN.
        """
        if self.source.moment is None:
            return
        others = self.saved is not None or any(one != scn for one in self._pending())
        present = Present.UNUSED if others else Present.CLAIMED
        lacking = self.source.store_dictionary(self.path, scn, present)
        if lacking:
            raise OlrPgError(
                Code.COPY_NOT_USABLE,
                "Oracle has no undo for the dictionary as of this SCN, or tables were created"
                f" later: {', '.join(lacking)}",
                action="begin a copy with --begin-copy, which stores the dictionary, and copy the"
                " rows again",
                scn=scn,
            )

    def _pending(self) -> dict[int, str]:
        with connect(self.target, replica=None) as connection:
            is_there = relation_exists(connection, "olr_pg.load")
            return read_pending(connection, self.subscription) if is_there else {}

    def add(self, tables: Collection[str], *, is_later: bool = False) -> None:
        """Add tables to the dictionaries as of each SCN from which a run can start.

        Args:
            tables: the names of the new tables.
            is_later: whether the tables join the list with a later command, which adds them again.

        Raises:
            OlrPgError: 8015, Oracle has no undo for one of these SCNs, or a table was created after
                one of them. The next start of a run would refuse its list of tables.
        """
        if self.source.moment is None:
            return
        pending = self._pending()
        for scn in sorted({*pending, *([self.saved] if self.saved else [])}):
            present = Present.EARLIER_RUNS if scn not in pending else Present.UNUSED
            lacking = self.source.store_dictionary(self.path, scn, present)
            # With several containers, the names in `lacking` begin with the container.
            missing = [
                one for one in tables if any(f".{name}".endswith(f".{one}") for name in lacking)
            ]
            if missing and not is_later:
                raise _not_addable(scn, missing, pending.get(scn, ""))


def _not_addable(scn: int, missing: list[str], loaded: str) -> OlrPgError:
    """Return the error that tables cannot be added yet.

    Args:
        loaded: a table whose load needs redo from `scn` on; empty if replication is at `scn`.
    """
    names = ", ".join(missing)
    if loaded in missing:
        action = begin_again(loaded)
    elif loaded:
        action = (
            f"complete the load or the copy of {loaded}, and wait until `olr-pg run` has replicated"
            " the changes since then. Then repeat the command"
        )
    else:
        action = "wait until `olr-pg run` is up to date, then repeat the command"
    reason = f"replication of {loaded} begins" if loaded else "replication is"
    return OlrPgError(
        Code.TABLES_NOT_CHANGEABLE,
        f"{reason} at SCN {scn}, and the dictionary of {names} as of this SCN is not available:"
        " Oracle has no undo for it, or the table was created later",
        action=action,
        table=missing[0],
    )
