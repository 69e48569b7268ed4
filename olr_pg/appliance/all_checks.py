"""``olr-pg doctor``: runs all checks for one configuration."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from olr_pg.appliance.appliance import applier_settings
from olr_pg.appliance.container_names import offline_dictionary
from olr_pg.appliance.encryption import check_key
from olr_pg.appliance.mapping_checks import check_idle
from olr_pg.appliance.offline_checks import check_encryption, check_logs, check_supplemental
from olr_pg.appliance.target import target_path
from olr_pg.applier.target_checks import check_target
from olr_pg.config.source_section import OfflineSource
from olr_pg.datatypes.convert import DEFAULT_FACTS, DatabaseFacts
from olr_pg.decoding.filters import filters_of_target
from olr_pg.dictionary.structure import NO_STRUCTURE
from olr_pg.dictionary.table_list import query_tables
from olr_pg.errors import Code, OlrPgError
from olr_pg.java.runtime import find_java
from olr_pg.observability.findings import Finding, coded, error, warning
from olr_pg.server.checkpoint import FILE_NAME as CHECKPOINT
from olr_pg.server.checkpoint import read_saved
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.config.model import Config
    from olr_pg.decoding.filters import Filters
    from olr_pg.dictionary.model import Database, Table
    from olr_pg.dictionary.structure import Structure

DISK_WARNING: Final = 4 << 30
DISK_ERROR: Final = 256 << 20
_NOWHERE: Final = ("127.0.0.1", 0)


def diagnose(config: Config, *, for_load: bool = False) -> list[Finding]:
    """Check the source, the target and this machine; return the findings.

    Args:
        for_load: also run the checks for `initial-load` and `verify`.
    """
    found, database, tables, structure = _check_source(config, for_load)
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
        settings = replace(settings, containers=database.containers if database else ())
        found += check_target(settings, tables, structure)
    found += _check_disk(config)
    try:
        check_key(config, Path(config.context.data))
    except OlrPgError as problem:
        found.append(coded("encryption", problem))
    try:
        find_java()
    except OlrPgError as problem:
        found.append(coded("spark.java", problem))
    return found


def _check_source(
    config: Config, for_load: bool
) -> tuple[list[Finding], Database | None, tuple[Table, ...], Structure]:
    query = config.apply.table_query if config.apply else None
    source, filters = config.source, filters_of_target(config)
    if isinstance(source, OfflineSource):
        try:
            snapshot = offline_dictionary(config, source)
            tables = query_tables(snapshot, query) if query else ()
        except OlrPgError as problem:
            return [coded("offline.dictionary", problem)], None, (), NO_STRUCTURE
        found = check_logs(config, source, snapshot)
        found += check_supplemental(snapshot, tables)
        found += check_encryption(snapshot)
        found += _check_selection(filters, tables, snapshot.database)
        found += check_idle(config, snapshot.tables)
        return found, snapshot.database, tables, snapshot.structure
    from olr_pg.appliance.live_checks import check_live

    saved = read_saved(target_path(config) / CHECKPOINT).scn
    live = check_live(config, source, saved, for_load=for_load)
    found = [*live.findings, *check_idle(config, live.tables)]
    is_reported = any(finding.check == "filter.rows" for finding in found)
    if live.tables and live.database is not None and not is_reported:
        found += _check_selection(filters, live.tables, live.database)
    return found, live.database, live.tables, NO_STRUCTURE


def _check_selection(
    filters: Filters, tables: Sequence[Table], database: Database
) -> list[Finding]:
    """Check that the filters leave some table, and the columns that the tables need."""
    try:
        filters.chosen(tables, database)
    except OlrPgError as problem:
        return [coded("filter", problem)]
    return []


def _check_disk(config: Config) -> list[Finding]:
    found: list[Finding] = []
    vault = None if isinstance(config.source, OfflineSource) else config.source.vault
    places = {Code.DATA_DIRECTORY_UNUSABLE: target_path(config)} | (
        {Code.VAULT_UNUSABLE: Path(vault.directory)} if vault else {}
    )
    for code, place in places.items():
        # `run` would create the directory, but a check must not change anything. So check the
        # nearest parent directory that exists.
        there = next(folder for folder in (place, *place.parents) if os.path.exists(folder))  # noqa: PTH110 - one that may not be looked into is none
        if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
            reason = f"{there} is not a directory in which this user can write"
            found.append(coded("directory", OlrPgError(code, reason)))
            continue
        free = shutil.disk_usage(there).free
        if free < DISK_WARNING:
            report = error if free < DISK_ERROR else warning
            found.append(
                report(
                    "disk",
                    f"{place} has only {free >> 20} MiB of free space",
                    "free disk space there",
                )
            )
    return found
