"""Opens the configured source database, live or offline."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from olr_pg.appliance.container_names import offline_dictionary, source_dictionary
from olr_pg.appliance.loaded_start import LoadedStart
from olr_pg.capture.lineage import FILE_NAME, Lineage
from olr_pg.capture.online_logs import FOLDER, MemberWay, OnlineLogs
from olr_pg.capture.source_database import OfflineDatabase
from olr_pg.config.source_section import OfflineSource
from olr_pg.config.table_patterns import LEDGER
from olr_pg.decoding.filters import FilteredDatabase, filters_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from olr_pg.capture.source_database import SourceDatabase
    from olr_pg.config.model import Config
    from olr_pg.config.source_section import OracleSource

DICTIONARY: Final = "dictionary.json"
"""File in `context.data` with the dictionary that a run of a live source began with."""


@contextmanager
def open_source(
    config: Config,
    data: Path,
    saved: Callable[[], int | None],
    loaded: LoadedStart | None = None,
) -> Iterator[SourceDatabase]:
    """Open the source of `config`. Tables and columns that a filter excludes are left out.

    Args:
        data: the directory `context.data`.
        saved: returns the checkpoint's SCN, below which no redo is needed; None without a
            checkpoint. It is called when the source needs the SCN.
        loaded: finds the SCN at which a run starts because of initial loads. It is queried when the
            source needs the SCN. None if there are no loads.

    Raises:
        OlrPgError: 3xxx errors of the offline dictionary, 7xxx errors of the live database, 1092
            files in `data` cannot be written.
    """
    filters = filters_of(config.filter, config.fallback)
    source = config.source
    if isinstance(source, OfflineSource):
        online = None
        if source.redo == "online":
            online = OnlineLogs(data / FOLDER, source.verify_ms / 1000)
        snapshot = offline_dictionary(config, source, keep=True)
        offline = OfflineDatabase(
            snapshot,
            [str(place) for place in source.logs],
            poll_seconds=source.poll_ms / 1000,
            lineage=Lineage(data / FILE_NAME),
            online=online,
            online_specs=[str(place) for place in source.online_logs or ()],
            saved=saved,
        )
        try:
            yield FilteredDatabase(offline, filters)
        finally:
            if online is not None:
                online.close()
        return
    # Import here, so that the drivers are loaded only if they are needed.
    from olr_pg.oracle.live_source import LiveDatabase
    from olr_pg.oracle.transport.log_transport import make_transport
    from olr_pg.oracle.vault import LogVault

    loads = loaded or LoadedStart()
    first_scn = min(part.apply.start_scn if part.apply else 0 for part in config.targets)
    live = LiveDatabase(
        source,
        Lineage(data / FILE_NAME),
        start_scn=lambda: saved() or first_scn,
        loaded_scn=loads.scn,
        dictionary=data / DICTIONARY,
        vault=None
        if source.vault is None
        else LogVault(
            source.vault,
            saved,
            None if source.transport is None else make_transport(source.transport, source),
            loads.needed,
        ),
        online=_online_logs(source, data),
        join=partial(source_dictionary, config, keep=True),
        ledger=None if config.fallback is None else (config.fallback.owner, LEDGER),
    )
    try:
        yield FilteredDatabase(live, filters)
    finally:
        live.close()


def _online_logs(source: OracleSource, data: Path) -> OnlineLogs | None:
    """Return the reader of the online logs: as files of a mounted directory, or over
    `source.transport`.
    """
    if source.redo != "online":
        return None
    folder, verify_seconds = data / FOLDER, source.verify_ms / 1000
    if source.transport is None:
        return OnlineLogs(folder, verify_seconds)
    from olr_pg.oracle.transport.log_transport import open_ranges

    ranges = open_ranges(source.transport, source)
    way = MemberWay(ranges.open, ranges.look_seconds, ranges.close)
    return OnlineLogs(folder, verify_seconds, way=way)
