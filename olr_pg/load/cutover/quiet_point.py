"""Asks the source what a cut-over must know: is it quiet, how far archived, where are sequences.

A live database tells. Of an offline one only its logs and an exported dictionary are known: that
nobody writes to it any more is somebody else's word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from olr_pg.appliance.container_names import offline_dictionary, refuse_several
from olr_pg.capture.logs import discover_logs
from olr_pg.capture.orphans import ends_of, incarnations_of, without_orphans
from olr_pg.config.source_section import OfflineSource
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.wording import counted

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path
    from typing import Any

    from olr_pg.config.model import Config
    from olr_pg.dictionary.structure import Sequence
    from olr_pg.oracle.oracle_connection import OracleDatabase


class Quiet(NamedTuple):
    """The end of the source.

    Attributes:
        scn: no change of the replicated tables commits after it.
        remark: what nobody here can know.
    """

    scn: int
    remark: str = ""


class CutoverSource(Protocol):
    """The source of a cut-over."""

    def quiet(self) -> Quiet:
        """Find where the source ends.

        Raises:
            OlrPgError: 5121, transactions are open.
        """

    def archived(self) -> dict[int, int]:
        """Up to which SCN, inclusive, each redo thread is archived."""

    def sequences(self, owners: Collection[str], scn: int) -> tuple[Sequence, ...]:
        """Read the sequences of these users as of `scn` or later.

        Raises:
            OlrPgError: 5126, only older positions are known.
        """


def cutover_source(config: Config, dictionary: Path | None, final_scn: int | None) -> CutoverSource:
    """Open the source that the configuration names.

    Args:
        dictionary: of an offline source, exported at the end; None for the configuration's.
        final_scn: of an offline source, where it ends; None for the end of its logs.
    """
    if isinstance(config.source, OfflineSource):
        if dictionary is not None and len(config.source.dictionary) > 1:
            raise OlrPgError(
                Code.NOT_OF_SEVERAL_CONTAINERS,
                "the final dictionaries of several containers are those of `source.dictionary`",
                action="replace the files of `source.dictionary`, and leave --dictionary out",
            )
        return _Offline(config, config.source, dictionary, final_scn)
    from olr_pg.oracle.oracle_connection import OracleDatabase

    refuse_several(config.source, "the cut-over of a live source")
    return _Live(OracleDatabase(config.source))


class _Offline:
    def __init__(
        self,
        config: Config,
        source: OfflineSource,
        dictionary: Path | None,
        final_scn: int | None,
    ) -> None:
        self._config = config
        self._source = source
        self._dictionary = dictionary
        self._final_scn = final_scn

    def quiet(self) -> Quiet:
        scn = self._final_scn or max(self.archived().values(), default=0)
        return Quiet(scn, "whether the source is quiet cannot be seen from its logs")

    def archived(self) -> dict[int, int]:
        ends = dict[int, int]()
        logs = discover_logs([str(place) for place in self._source.logs])
        for log in without_orphans(logs, ends_of(incarnations_of(logs))):
            thread = log.header.thread
            ends[thread] = max(ends.get(thread, 0), (log.end_scn or log.next_scn) - 1)
        return ends

    def sequences(self, owners: Collection[str], scn: int) -> tuple[Sequence, ...]:
        given = self._dictionary
        snapshot = (
            offline_dictionary(self._config, self._source)
            if given is None
            else load_snapshot(str(given))
        )
        found = tuple(one for one in snapshot.structure.sequences if one.owner in owners)
        if found and snapshot.scn < scn:
            raise OlrPgError(
                Code.SEQUENCES_TOO_OLD,
                f"the dictionary is as of SCN {snapshot.scn}, the source ends at {scn}",
                file=", ".join(map(str, self._source.dictionary if given is None else [given])),
            )
        return found


class _Live:
    def __init__(self, oracle: OracleDatabase) -> None:
        self._oracle = oracle

    def _read(self, doing: str, work: Any) -> Any:
        try:
            return self._oracle.read(doing, work)
        finally:
            self._oracle.close()

    def quiet(self) -> Quiet:
        from olr_pg.oracle.quiet_source import Activity, read_activity

        found: Activity = self._read("looking for open transactions", read_activity)
        if found.transactions:
            raise OlrPgError(
                Code.SOURCE_NOT_QUIET,
                f"{counted(found.transactions, 'open transaction')}, the oldest since SCN"
                f" {found.oldest}",
            )
        return Quiet(found.scn)

    def archived(self) -> dict[int, int]:
        from olr_pg.oracle.quiet_source import read_archived

        ends: dict[int, int] = self._read("looking for archived logs", read_archived)
        return ends

    def sequences(self, owners: Collection[str], scn: int) -> tuple[Sequence, ...]:
        from olr_pg.oracle.structure_queries import read_sequences

        found: tuple[Sequence, ...] = self._read(
            "reading the sequences", lambda connection: read_sequences(connection, owners, scn)
        )
        return found
