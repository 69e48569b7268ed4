"""``olr-pg doctor``: runs all checks for one configuration.

The checks of a live source run in each of its containers. Properties that the containers share,
such as the redo, are checked once. A finding about one container includes the container's name, and
its SQL statements begin with the switch to this container.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg

from olr_pg.appliance.appliance import applier_settings
from olr_pg.appliance.container_names import offline_dictionary, source_dictionary
from olr_pg.appliance.encryption import check_key
from olr_pg.appliance.exposure_checks import (
    check_files,
    check_search_path,
    check_source_peer,
    check_target_peer,
)
from olr_pg.appliance.mapping_checks import check_idle
from olr_pg.appliance.offline_checks import check_encryption, check_logs, check_supplemental
from olr_pg.appliance.target import target_path
from olr_pg.applier.target.connection import connect_with
from olr_pg.applier.target_checks import check_planned_target, check_target
from olr_pg.config.source_section import OfflineSource, OracleSource
from olr_pg.datatypes.convert import DEFAULT_FACTS, DatabaseFacts
from olr_pg.decoding.filters import Filters, charsets_of, filters_of_target
from olr_pg.dictionary.selection import find_tables
from olr_pg.dictionary.structure import NO_STRUCTURE, Structure
from olr_pg.dictionary.table_list import query_tables
from olr_pg.dictionary.true_charsets import with_database_charsets
from olr_pg.errors import Code, OlrPgError
from olr_pg.java.runtime import find_java
from olr_pg.observability.findings import Finding, coded, error, warning
from olr_pg.oracle.source_checks import Diagnosis, check_oracle
from olr_pg.oracle.source_containers import ContainerDatabases
from olr_pg.server.checkpoint import FILE_NAME as CHECKPOINT
from olr_pg.server.checkpoint import read_saved
from olr_pg.wire.frames import ByteOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.conditions.typed_conditions import RowCondition
    from olr_pg.config.model import Config
    from olr_pg.dictionary.model import Database, Table
    from olr_pg.oracle.facts import CurrentDatabase

    Condition = Callable[[Table, CurrentDatabase], RowCondition | None]


class LiveDiagnosis(NamedTuple):
    """The findings about a live source.

    Attributes:
        database: the properties of the database; None if they could not be read.
        tables: the selected tables, with names that are unique among all containers.
    """

    findings: list[Finding]
    database: Database | None
    tables: tuple[Table, ...]


def check_live(
    config: Config, source: OracleSource, saved_scn: int | None, *, for_load: bool
) -> LiveDiagnosis:
    """Check a live source, container by container.

    Args:
        saved_scn: the SCN from which redo is still needed; None before the first run.
        for_load: also run the checks for a load and a verification.
    """
    containers = ContainerDatabases(source)
    checking = _Checking(config, containers, saved_scn, for_load=for_load)
    try:
        return checking.of_several() if containers.names else checking.of_one()
    finally:
        containers.close()


class _Checking:
    def __init__(
        self,
        config: Config,
        containers: ContainerDatabases,
        saved_scn: int | None,
        *,
        for_load: bool,
    ) -> None:
        self._config = config
        self._containers = containers
        self._query = config.apply.table_query if config.apply else None
        self._saved_scn = saved_scn
        self._for_load = for_load

    def of_one(self) -> LiveDiagnosis:
        found = self._check("", self._query, of_database=True)
        database = found.facts and found.facts.database
        if found.snapshot is None:
            return LiveDiagnosis(found.findings, database, found.tables)
        try:
            known = source_dictionary(self._config, [found.snapshot], keep=False)
        except OlrPgError as problem:
            finding = coded("oracle.charset", problem)
            return LiveDiagnosis([*found.findings, finding], database, found.tables)
        named = (known.find(table.owner, table.name) for table in found.tables)
        tables = tuple(table for table in named if table is not None)
        return LiveDiagnosis(found.findings, known.database, tables)

    def of_several(self) -> LiveDiagnosis:
        names, problem = self._names()
        query = None if problem else self._query
        found: list[Diagnosis] = []
        findings: list[Finding] = []
        for number, name in enumerate(self._containers.names):
            own = self._containers.own(names, name)
            one = self._check(name, query, of_database=number == 0, names=own)
            findings += [_in_container(each, name) for each in one.findings]
            found.append(one)
        if problem is not None and all(one.facts is not None for one in found):
            findings.append(coded("oracle.tables", problem))
        return self._joined(names, found, findings)

    def _names(self) -> tuple[list[tuple[str, str]], OlrPgError | None]:
        """Return the names of the tables of all containers, or the error of the query."""
        if self._query is None:
            return [], None
        try:
            return self._containers.run_table_list(self._query), None
        except OlrPgError as problem:
            return [], problem

    def _check(
        self,
        container: str,
        query: str | None,
        *,
        of_database: bool,
        names: Sequence[tuple[str, str]] | None = None,
    ) -> Diagnosis:
        rows = filters_of_target(self._config).rows
        return check_oracle(
            self._containers.sources[container],
            self._containers.databases[container],
            query,
            self._saved_scn,
            for_load=self._for_load,
            condition=self._condition(container) if rows else None,
            of_database=of_database,
            names=names,
        )

    def _condition(self, container: str) -> Condition:
        filters = filters_of_target(self._config)

        def condition(table: Table, facts: CurrentDatabase) -> RowCondition | None:
            if container:
                table = replace(table, owner=f"{container}.{table.owner}", container=container)
            sets = tuple(self._config.source.character_sets.items())
            database = replace(facts.database, true_charsets=sets)
            return filters.row_condition(
                with_database_charsets(table, database), charsets_of(database)
            )

        return condition

    def _joined(
        self, names: Sequence[tuple[str, str]], found: Sequence[Diagnosis], findings: list[Finding]
    ) -> LiveDiagnosis:
        """Return the joined diagnosis of all containers, if all could be read."""
        snapshots = [one.snapshot for one in found if one.snapshot is not None]
        known = [one.facts.database for one in found if one.facts is not None]
        database = None
        if len(known) == len(found):
            database = replace(known[0], containers=self._containers.names)
        if len(snapshots) < len(found):
            return LiveDiagnosis(findings, database, ())
        try:
            joined = source_dictionary(self._config, snapshots, keep=False)
            chosen = {table.full_name: table for table in find_tables(joined, names)}
        except OlrPgError as problem:
            findings.append(coded("oracle.containers", problem))
            return LiveDiagnosis(findings, database, ())
        return LiveDiagnosis(findings, joined.database, tuple(chosen.values()))


def _in_container(finding: Finding, container: str) -> Finding:
    """Add the name of the container to a finding, and the switch to the container to its
    statements.
    """
    mend = finding.mend
    is_of_database = any(line.startswith("ALTER SESSION SET CONTAINER") for line in mend)
    if any(line.endswith(";") for line in mend) and not is_of_database:
        mend = (f"ALTER SESSION SET CONTAINER = {container};", *mend)
    return replace(finding, what=f"{container}: {finding.what}", mend=mend)


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
    if apply is not None:
        facts = database and DatabaseFacts(database.charset, database.ncharset, database.timezone)
        settings = applier_settings(
            apply,
            apply.connect_string.get_secret_value(),
            _NOWHERE,
            ByteOrder(config.port.byte_order),
            facts or DEFAULT_FACTS,
        )
        settings = replace(settings, containers=database.containers if database else ())
        if apply.embedded:  # doctor starts no server
            found += check_planned_target(settings, tables, structure)
        else:
            found += check_target(settings, tables, structure)
            found += _check_peer(settings)
    found += check_files(config)
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


def _check_peer(settings: ApplierSettings) -> list[Finding]:
    try:
        with connect_with(settings, writes=False) as connection:
            return [*check_target_peer(connection), *check_search_path(connection)]
    except (psycopg.Error, OlrPgError):
        return []  # another check reports it


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

    saved = read_saved(target_path(config) / CHECKPOINT).scn
    live = check_live(config, source, saved, for_load=for_load)
    found = [*live.findings, *check_source_peer(source), *check_idle(config, live.tables)]
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
