"""Checks the logs of an offline source for `olr-pg doctor`."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from olr_pg.appliance.target import confirming_applier, target_path
from olr_pg.capture.finished_logs import DecodedLogs
from olr_pg.capture.logs import LogPlaces, no_logs
from olr_pg.capture.orphans import follow_resetlogs, incarnations_of
from olr_pg.capture.wanted_logs import check_beginning, wanted_stream
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.findings import Finding, coded, warning
from olr_pg.replicator.recovery.bounded_recovery import DIRECTORY as RECOVERY_DIRECTORY
from olr_pg.replicator.recovery.image_files import read_image
from olr_pg.replicator.recovery.run_images import marks_of
from olr_pg.server.checkpoint import FILE_NAME, read_saved, source_identity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from olr_pg.capture.archived_log import Reached
    from olr_pg.capture.logs import LogScan
    from olr_pg.config.model import Config
    from olr_pg.config.source_section import OfflineSource
    from olr_pg.dictionary.model import Database, Snapshot

_COMING: Final = frozenset({Code.LOG_TRUNCATED, Code.LOG_COPIED_TOO_EARLY})
"""Errors of a log that is too short or not closed yet: it may still be being copied."""

_CHECK: Final = "offline.logs"

_NAMED_MAX: Final = 5


def check_logs(config: Config, source: OfflineSource, dictionary: Snapshot) -> list[Finding]:
    """Return findings about an offline source's logs. Only the headers of archived logs are read.

    Args:
        dictionary: the logs must be of its database, and must not begin after its SCN.
    """
    online = source.redo == "online"
    places = [*source.logs, *((source.online_logs or ()) if online else ())]
    try:
        scan = LogPlaces([str(place) for place in places], online=online).scan()
        return list(_findings(config, scan, dictionary))
    except OlrPgError as problem:
        return [coded(_CHECK, problem)]


def _findings(config: Config, scan: LogScan, dictionary: Snapshot) -> Iterator[Finding]:
    """Yield the findings.

    Raises:
        OlrPgError: the last problem, which the caller converts to a finding.
    """
    for problem in scan.unusable:
        yield coded(_CHECK, problem, severe=problem.code not in _COMING)
    yield from _of_skipped(scan)
    if not scan.logs and not scan.unusable:
        yield coded(
            _CHECK,
            OlrPgError(Code.NO_LOGS, "`olr-pg run` would wait for the first log"),
            severe=False,
        )
    database = dictionary.database
    scn, reached = _begin(config, database)
    kept = follow_resetlogs(scan, incarnations_of(scan.logs), scn)
    stream = wanted_stream(kept, database, scn, reached, DecodedLogs())
    for gap in stream.gaps:
        yield coded(_CHECK, gap.as_error())
    check_beginning(kept.logs, scn, reached, known_scn=dictionary.scn)


def _of_skipped(scan: LogScan) -> Iterator[Finding]:
    by_action = defaultdict[tuple[str, str], list[str]](list)
    for file in scan.skipped:
        why = file.reason if file.action else "it is not a redo log"
        by_action[why, file.action].append(file.path)
    for (why, action), paths in by_action.items():
        names = ", ".join(paths[:_NAMED_MAX])
        more = len(paths) - _NAMED_MAX
        yield warning(
            _CHECK,
            f"skipped, because {why}: {names}" + (f" and {more} more" * (more > 0)),
            action
            or "if the file is not a log, ignore this warning. If it is a log, copy it again",
        )


def check_any_log(source: OfflineSource) -> None:
    """Check that there is at least one log, complete or not. A run with an end needs this, because
    it must not succeed without logs.

    Raises:
        OlrPgError: 2001, there is no log.
    """
    online = source.redo == "online"
    places = [*source.logs, *((source.online_logs or ()) if online else ())]
    scan = LogPlaces([str(place) for place in places], online=online).scan()
    if not scan.logs and not scan.unusable:
        raise no_logs([str(place) for place in places], scan.skipped)


def _begin(config: Config, database: Database) -> tuple[int, Mapping[int, Reached]]:
    """Return the point at which a run would begin: the SCN, and the position of each thread in the
    recovery image.
    """
    saved = read_saved(target_path(config) / FILE_NAME)
    if saved.scn is None:
        return config.apply.start_scn if config.apply else 0, {}
    is_own = config.apply is None or saved.confirmed_by == confirming_applier(config.apply)
    if saved.image is None or not is_own:
        return saved.scn, {}
    directory = Path(config.context.data) / RECOVERY_DIRECTORY
    try:
        image = read_image(directory / saved.image, source_identity(database))
    except OlrPgError:
        # A run also works without the image; then it reads from the checkpoint's SCN.
        return saved.scn, {}
    return saved.scn, marks_of(image)
