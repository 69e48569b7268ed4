"""Reads the facts about the source that a cut-over needs: whether transactions are open, how far
the redo is archived, and the positions of the sequences.

A live database is queried. For an offline source, only its logs and an exported dictionary are
known; the operator must ensure that no application writes to the source any more.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from olr_pg.appliance.container_names import offline_dictionary, source_dictionary
from olr_pg.appliance.dictionary_export import container_files
from olr_pg.capture.logs import discover_logs
from olr_pg.capture.wanted_logs import ends_of, incarnations_of, without_orphans
from olr_pg.config.source_section import OfflineSource, OracleSource
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.wording import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Snapshot
    from olr_pg.dictionary.structure import Sequence as TableSequence
    from olr_pg.oracle.redo_source import Activity
    from olr_pg.oracle.source_containers import ContainerDatabases


class Quiet(NamedTuple):
    """The point after which the source no longer changes.

    Attributes:
        scn: no change of the replicated tables commits after this SCN.
        remark: what the program cannot check for this source.
    """

    scn: int
    remark: str = ""


class CutoverSource(Protocol):
    """The source of a cut-over."""

    def quiet(self) -> Quiet:
        """Return the SCN at which the source ends.

        Raises:
            OlrPgError: 5121, transactions are open.
        """

    def archived(self) -> dict[int, int]:
        """Return for each redo thread the SCN, inclusive, up to which it is archived."""

    def sequences(self, owners: Collection[str], scn: int) -> tuple[TableSequence, ...]:
        """Read the sequences of these users as of `scn` or later.

        Raises:
            OlrPgError: 5126, only older positions are known.
        """


def cutover_source(
    config: Config, dictionary: Sequence[Path], final_scn: int | None
) -> CutoverSource:
    """Open the configured source.

    Args:
        dictionary: the final export of an offline source's dictionary: one file for each container,
            or the common name under which they were exported; empty for the configured files.
        final_scn: the SCN at which an offline source ends; None for the end of its logs.

    Raises:
        OlrPgError: 1090, the source is live, and `dictionary` or `final_scn` is given.
    """
    if isinstance(config.source, OfflineSource):
        return _Offline(config, config.source, dictionary, final_scn)
    if dictionary or final_scn is not None:
        raise OlrPgError(
            Code.NOT_SUPPORTED,
            "--final-scn and --dictionary are only for an offline source; with a live source,"
            " the cut-over reads the end SCN and the sequences from the database",
            action="omit these options",
        )
    from olr_pg.oracle.source_containers import ContainerDatabases

    return _Live(config, config.source, ContainerDatabases(config.source))


class _Offline:
    def __init__(
        self,
        config: Config,
        source: OfflineSource,
        dictionary: Sequence[Path],
        final_scn: int | None,
    ) -> None:
        self._config = config
        self._source = source
        self._dictionary = dictionary
        self._final_scn = final_scn

    def quiet(self) -> Quiet:
        scn = self._final_scn or max(self.archived().values(), default=0)
        return Quiet(scn, "logs alone cannot show whether the source is quiet")

    def archived(self) -> dict[int, int]:
        ends = dict[int, int]()
        logs = discover_logs([str(place) for place in self._source.logs], newest=True)
        for log in without_orphans(logs, ends_of(incarnations_of(logs))):
            thread = log.header.thread
            ends[thread] = max(ends.get(thread, 0), (log.end_scn or log.next_scn) - 1)
        return ends

    def sequences(self, owners: Collection[str], scn: int) -> tuple[TableSequence, ...]:
        snapshot = offline_dictionary(self._config, self._source)
        files: Sequence[Path] = self._source.dictionary
        if self._dictionary:
            snapshot, files = self._final_dictionary(snapshot.database.containers)
        found = tuple(one for one in snapshot.structure.sequences if one.owner in owners)
        if found and snapshot.scn < scn:
            raise OlrPgError(
                Code.SEQUENCES_TOO_OLD,
                f"the dictionary is as of SCN {snapshot.scn}, but the source ends at SCN {scn}",
                file=", ".join(map(str, files)),
            )
        return found

    def _final_dictionary(self, containers: Sequence[str]) -> tuple[Snapshot, Sequence[Path]]:
        """Load the final export of the dictionary; return it with its files.

        Args:
            containers: names of the source's containers, if there are several.

        Raises:
            OlrPgError: 3020, the export contains other containers; 3xxx, the export cannot be read.
        """
        files = self._dictionary
        if len(files) == 1 and not files[0].exists():
            files = container_files(files[0], containers)
        snapshots = [load_snapshot(str(file)) for file in files]
        if containers and sorted(_names_of(snapshots)) != sorted(containers):
            raise OlrPgError(
                Code.CONTAINERS_NOT_TOGETHER,
                f"the final dictionaries belong to {', '.join(_names_of(snapshots))}, but"
                f" the source's containers are {', '.join(containers)}",
                action="export the dictionaries of all containers at the end. Name each file"
                " with its own --dictionary, or all files together by the FILE of --out",
                file=", ".join(map(str, files)),
            )
        return source_dictionary(self._config, snapshots, keep=False), files


def _names_of(snapshots: Sequence[Snapshot]) -> list[str]:
    return [one.database.con_name or one.database.name for one in snapshots]


class _Live:
    def __init__(
        self, config: Config, source: OracleSource, containers: ContainerDatabases
    ) -> None:
        self._config = config
        self._source = source
        self._containers = containers

    def _read(self, doing: str, work: Any) -> Any:
        """Query the container that is used for the whole database."""
        with self._closing():
            return self._containers.first.read(doing, work)

    @contextmanager
    def _closing(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._containers.close()

    def quiet(self) -> Quiet:
        from olr_pg.oracle.redo_source import read_activity

        doing = "looking for open transactions"
        with self._closing():
            found: dict[str, Activity] = {
                name: one.read(doing, read_activity)
                for name, one in self._containers.databases.items()
            }
        active = [text for name, one in found.items() for text in _words(name, one)]
        if active:
            raise OlrPgError(Code.SOURCE_NOT_QUIET, "; ".join(active))
        # All containers share the SCN of the database, and the containers are checked one after the
        # other: the highest SCN belongs to the last check.
        return Quiet(max(one.scn for one in found.values()))

    def archived(self) -> dict[int, int]:
        from olr_pg.oracle.redo_source import read_archived, read_once

        ends: dict[int, int] = read_once(self._source, "looking for archived logs", read_archived)
        return ends

    def sequences(self, owners: Collection[str], scn: int) -> tuple[TableSequence, ...]:
        from olr_pg.oracle.dictionary_queries import read_sequences

        if self._containers.names:
            return self._sequences_of_several(owners, scn)
        found: tuple[TableSequence, ...] = self._read(
            "reading the sequences", lambda connection: read_sequences(connection, owners, scn)
        )
        return found

    def _sequences_of_several(self, owners: Collection[str], scn: int) -> tuple[TableSequence, ...]:
        """Read the sequences of all containers. An owner is named ``PDB.OWNER`` if the names of its
        tables include the container too.
        """
        query = self._config.apply.table_query if self._config.apply else ""
        with self._closing():
            names = self._containers.run_table_list(query)
            found = self._containers.read_dictionaries(names, scn)
        joined = source_dictionary(self._config, found, keep=False)
        return tuple(one for one in joined.structure.sequences if one.owner in owners)


def _words(container: str, found: Activity) -> Iterator[str]:
    where = f" in {container}" if container else ""
    if found.transactions:
        number = counted(found.transactions, "open transaction")
        yield f"{number}{where}, the oldest since SCN {found.oldest}"
    for one in found.in_doubt:
        yield f"the distributed transaction {one}{where} is in doubt (DBA_2PC_PENDING)"
