"""``olr-pg doctor`` for a live source: runs all checks, in each container.

Properties that the containers share, such as the redo, are checked once. A finding about one
container includes the container's name, and its SQL statements begin with the switch to this
container.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from olr_pg.appliance.container_names import source_dictionary
from olr_pg.decoding.filters import charsets_of, filters_of_target
from olr_pg.dictionary.selection import find_tables
from olr_pg.dictionary.true_charsets import with_database_charsets
from olr_pg.errors import OlrPgError
from olr_pg.observability.findings import Finding, coded
from olr_pg.oracle.source_checks import check_oracle
from olr_pg.oracle.source_containers import ContainerDatabases

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.conditions.typed_conditions import RowCondition
    from olr_pg.config.model import Config
    from olr_pg.config.source_section import OracleSource
    from olr_pg.dictionary.model import Database, Table
    from olr_pg.oracle.facts import CurrentDatabase
    from olr_pg.oracle.source_checks import Diagnosis

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
