"""The containers (PDBs) of a live source: one connection for each, and queries over all of them.

Each container has its own session: a common user connects to the service of `source.server` and
switches to the container (ALTER SESSION SET CONTAINER). Code that reads one container gets a source
that names only this container (`sources_of`), and needs no knowledge of the others. The module
combines the results of all containers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from olr_pg.dictionary.table_list import WITH_REDO, names_in_containers
from olr_pg.errors import OlrPgError
from olr_pg.oracle.dictionary_queries import (
    read_dictionary,
    read_structure,
    read_table_names,
    read_unchanged,
)
from olr_pg.oracle.driver.bounded_calls import SNAPSHOT_AGE
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.oracle.table_list_query import run_table_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from olr_pg.config.source_section import OracleSource
    from olr_pg.dictionary.model import Snapshot, Table

_log = structlog.get_logger(__name__)

_ALL_TABLES: Final = f"SELECT OWNER, TABLE_NAME FROM DBA_TABLES WHERE {WITH_REDO}"  # noqa: S608 - constant
"""ALL_TABLES is not used, because it contains only tables whose rows the account can read."""

_NAMED: Final = 10
"""Number of tables that an error names."""

_QUERY_ERRORS: Final = 3
"""The thousands of the codes of errors of TableList queries."""


def sources_of(source: OracleSource) -> dict[str, OracleSource]:
    """Return a source for each container, by the container's name. If there is only one container,
    return `source` itself, with an empty name.
    """
    if len(source.containers) < 2:
        return {"": source}
    names = [one.upper() for one in source.containers]
    return {name: source.model_copy(update={"containers": (name,)}) for name in names}


def begun_file(path: Path, scn: int) -> Path:
    """Return the file with the dictionary as of the SCN from which a load, or a copy by another
    tool, needs redo.

    Args:
        path: the file of the dictionary of a run.
    """
    return path.with_name(path.name.replace(".", f"-{scn}.", 1))


def begun_scns(files: Sequence[Path]) -> list[int]:
    """Return the SCNs of the files that `begun_file` names and that exist, the lowest first.

    Args:
        files: the file of each container's dictionary of a run.
    """
    found = set[int]()
    for file in files:
        first, _, rest = file.name.partition(".")
        form = re.compile(rf"{re.escape(first)}-(\d+)\.{re.escape(rest)}")
        names = (form.fullmatch(one.name) for one in file.parent.glob(f"{first}-*"))
        found |= {int(name[1]) for name in names if name}
    return sorted(found)


class ContainerDatabases:
    """The databases of a live source, one for each of its containers.

    Args:
        source: the address of the database, and the account.

    Attributes:
        sources: the source of each container, by the container's name. If there is only one
            container, its name is empty.
        databases: the database of each container, by the same names and in the same order.

    Raises:
        OlrPgError: 7008, see `OracleDatabase`.
    """

    def __init__(self, source: OracleSource) -> None:
        self.sources = sources_of(source)
        self.databases = {name: OracleDatabase(one) for name, one in self.sources.items()}

    @property
    def first(self) -> OracleDatabase:
        """The container that is used for queries about the whole database."""
        return next(iter(self.databases.values()))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the containers, if there are several."""
        return tuple(self.databases) if len(self.databases) > 1 else ()

    def close(self) -> None:
        """Close every connection."""
        for database in self.databases.values():
            database.close()

    def run_table_list(
        self, query: str, is_abandoned: Callable[[], bool] | None = None
    ) -> list[tuple[str, str]]:
        """Run a TableList query; with several containers, owners are ``PDB.OWNER``.

        Args:
            is_abandoned: returns whether the client has disconnected; called from another thread.

        Raises:
            OlrPgError: 3010 to 3017 errors of the query, 70xx errors of the database.
        """
        if not self.names:
            return run_table_list(self.first, query, is_abandoned)
        known = {
            name: run_table_list(one, _ALL_TABLES, is_abandoned)
            for name, one in self.databases.items()
        }
        return names_in_containers(known, query, is_abandoned)

    def run_other_lists(self, queries: Iterable[str]) -> dict[str, list[tuple[str, str]]]:
        """Run the TableList queries of other targets, and return the tables of each query. A query
        that fails is left out, because its own target reports the error.

        Raises:
            OlrPgError: 70xx, errors of the database.
        """
        found = dict[str, list[tuple[str, str]]]()
        for query in queries:
            try:
                found[query] = self.run_table_list(query)
            except OlrPgError as error:
                if error.code // 1000 != _QUERY_ERRORS:
                    raise
        return found

    def table_names(self, scn: int | None = None) -> set[tuple[str, str]]:
        """Return the names of all tables; owners as in `run_table_list`.

        Args:
            scn: the SCN to read as of; None for the present.

        Raises:
            OlrPgError: 7001 to 7009; 7005 if Oracle can no longer read as of `scn`.
        """
        found = set[tuple[str, str]]()
        for name, oracle in self.databases.items():
            prefix = f"{name}." if self.names else ""
            read = oracle.read("reading the names of tables", partial(read_table_names, scn=scn))
            found |= {(prefix + owner, table) for owner, table in read}
        return found

    def absent(self, names: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return those of these tables that do not exist now; names as in `run_table_list`.

        Raises:
            OlrPgError: 7001 to 7009.
        """
        present = self.table_names() if names else set[tuple[str, str]]()
        return [one for one in names if one not in present]

    def files(self, path: Path) -> list[Path]:
        """Return the file of each container's dictionary.

        Args:
            path: the file of the dictionary of a source without several containers.
        """
        return [path.with_suffix(f".{one}.json") for one in self.names] or [path]

    def own(self, names: Sequence[tuple[str, str]], container: str) -> list[tuple[str, str]]:
        """Return the entries of `names` that belong to a container, with the container's name
        removed from the owner.
        """
        if not self.names:
            return list(names)
        prefix = f"{container}."
        return [
            (owner.removeprefix(prefix), table)
            for owner, table in names
            if owner.startswith(prefix)
        ]

    def container_of(self, table: Table, snapshot: Snapshot) -> str:
        """Return the name of a table's container, as used in `sources` and `databases`.

        Args:
            table: a table of `snapshot`.
            snapshot: the joined dictionaries of all containers, or the only dictionary.
        """
        known = {one.database.con_id: one.database.con_name for one in snapshot.members}
        return known.get(table.con_id) or ""

    def read_dictionaries(
        self, names: Sequence[tuple[str, str]], scn: int | None = None, *, structure: bool = True
    ) -> list[Snapshot]:
        """Read the dictionary of each container, all as of one SCN. If Oracle has no undo for this
        SCN, but no DDL has changed the tables since, the present dictionary is the same one.

        Args:
            names: names of the tables, from `run_table_list`.
            scn: the SCN to read as of; None for the current SCN.
            structure: whether to include keys, indexes and sequences.

        Raises:
            OlrPgError: 3005, 7001 to 7009; 7005 if Oracle can no longer read as of `scn`, and DDL
                may have changed a table since.
        """
        found: list[Snapshot] = []
        for name, oracle in self.databases.items():
            at = found[0].scn if found else scn
            snapshot = _read_as_of(oracle, self.own(names, name), at)
            if structure:
                snapshot = replace(snapshot, structure=read_structure(oracle, snapshot))
            found.append(snapshot)
        return found


def _read_as_of(
    oracle: OracleDatabase, names: Sequence[tuple[str, str]], scn: int | None
) -> Snapshot:
    try:
        return read_dictionary(oracle, names, scn)
    except OlrPgError as error:
        if error.code != SNAPSHOT_AGE or scn is None:
            raise
        snapshot, changed = read_unchanged(oracle, names, scn)
        if changed:
            tables = ", ".join(changed[:_NAMED]) + (" …" if len(changed) > _NAMED else "")
            reason = f"{error.detail}; later DDL may have changed {tables}"
            raise OlrPgError(error.code, reason, action=error.action, **error.where) from error
    _log.info("Oracle has no undo for the dictionary, but there was no DDL since then", scn=scn)
    return snapshot
