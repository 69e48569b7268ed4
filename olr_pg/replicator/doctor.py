"""``olr-pg doctor``: every check there is, for one configuration."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from olr_pg.applier.checks import check_target
from olr_pg.config.source import OfflineSource
from olr_pg.datatypes.convert import DEFAULT_FACTS, DatabaseFacts
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.table_list import query_tables
from olr_pg.errors import OlrPgError
from olr_pg.observability.findings import Finding, coded, error, warning
from olr_pg.replicator.appliance import applier_settings
from olr_pg.replicator.offline_checks import check_logs
from olr_pg.replicator.target import target_path
from olr_pg.server.checkpoint import FILE_NAME as CHECKPOINT
from olr_pg.server.checkpoint import read_saved
from olr_pg.spark.java import find_java
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Database, Table

DISK_WARNING: Final = 4 << 30
DISK_ERROR: Final = 256 << 20
_NOWHERE: Final = ("127.0.0.1", 0)


def diagnose(config: Config, *, for_load: bool = False) -> list[Finding]:
    """What is wrong with the source, the target and this machine; empty where nothing is.

    Args:
        for_load: also what `initial-load` and `verify` need of the source.
    """
    found, database, tables = _check_source(config, for_load)
    apply = config.apply
    if apply is not None and not apply.embedded:
        facts = database and DatabaseFacts(database.charset, database.ncharset, database.timezone)
        settings = applier_settings(
            apply,
            apply.connect_string.get_secret_value(),
            _NOWHERE,
            ByteOrder(config.port.byte_order),
            facts or DEFAULT_FACTS,
        )
        found += check_target(settings, tables)
    found += _check_disk(config)
    try:
        find_java()
    except OlrPgError as problem:
        found.append(coded("spark.java", problem))
    return found


def _check_source(
    config: Config, for_load: bool
) -> tuple[list[Finding], Database | None, tuple[Table, ...]]:
    query = config.apply.table_query if config.apply else None
    source = config.source
    if isinstance(source, OfflineSource):
        try:
            snapshot = load_snapshot(str(source.dictionary))
            tables = query_tables(snapshot, query) if query else ()
        except OlrPgError as problem:
            return [coded("offline.dictionary", problem)], None, ()
        return check_logs(config, source, snapshot.database), snapshot.database, tables
    from olr_pg.oracle.checks import check_oracle
    from olr_pg.oracle.connection import OracleDatabase

    saved = read_saved(target_path(config) / CHECKPOINT).scn
    oracle = OracleDatabase(source)
    try:
        diagnosis = check_oracle(source, oracle, query, saved, for_load=for_load)
    finally:
        oracle.close()
    facts = diagnosis.facts
    return diagnosis.findings, facts and facts.database, diagnosis.tables


def _check_disk(config: Config) -> list[Finding]:
    found: list[Finding] = []
    vault = None if isinstance(config.source, OfflineSource) else config.source.vault
    places = {1092: target_path(config)} | ({7030: Path(vault.directory)} if vault else {})
    for code, place in places.items():
        # What `run` will make is not made here: the directory above it tells.
        there = next(folder for folder in (place, *place.parents) if os.path.exists(folder))  # noqa: PTH110 - one that may not be looked into is none
        if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
            reason = f"{there} is no directory that this user may write to"
            found.append(coded("directory", OlrPgError(code, reason)))
            continue
        free = shutil.disk_usage(there).free
        if free < DISK_WARNING:
            report = error if free < DISK_ERROR else warning
            found.append(report("disk", f"{place} has {free >> 20} MiB left", "make room there"))
    return found
