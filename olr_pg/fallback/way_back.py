"""Defines what the modules of the fallback share: both sides, the tables, and how values are
converted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from olr_pg.applier.settings import ConflictPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Any

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.target.catalogue import TargetColumn
    from olr_pg.config.source_section import OracleSource
    from olr_pg.dictionary.model import Column, Table


class BoundValues(Protocol):
    """Values of a column as python-oracledb binds them; implemented by `oracle_values.Bound`."""

    @property
    def values(self) -> Sequence[object | None]:
        """One value for each row."""

    @property
    def db_type(self) -> Any:
        """The type for `setinputsizes`."""

    @property
    def expression(self) -> str:
        """SQL in which ``{}`` stands for the bind."""

    @property
    def altered(self) -> Sequence[AlteredValue]:
        """The values that a policy has changed."""


class AlteredValue(Protocol):
    """A value that a policy has changed; implemented by `oracle_values.Altered`."""

    @property
    def cause(self) -> str:
        """What did not fit."""

    @property
    def policy(self) -> str:
        """The policy that was applied."""


class ValueColumn(Protocol):
    """Converts a column's values from PostgreSQL's binary form to Oracle's."""

    def bind(self, raw: Sequence[bytes | None]) -> BoundValues:
        """Return the values for python-oracledb.

        Raises:
            OlrPgError: Oracle cannot store a value.
        """


class WayBack(NamedTuple):
    """The objects that one fallback to one PDB consists of.

    Attributes:
        source: Oracle, with the account that writes.
        connect_string: of PostgreSQL.
        subscription: of the replication from Oracle; it names this fallback in Oracle's ledger.
        tables: the tables to replicate, as in Oracle's dictionary.
        settings: the applier's settings, with the names in PostgreSQL.
        value_column: makes the conversion of a column from (``OWNER.NAME``, Oracle's column,
            PostgreSQL's type).
        directory: for files of large transactions; None for the system's temporary directory.
        batch_changes: number of row changes after which a batch is committed in Oracle.
        conflict: how to resolve a change whose row is missing, or an insert whose row already
            exists.
        container: the name of the PDB, if the source has several; else empty.
        omits: returns whether a column that Oracle lacks is omitted: (``OWNER.NAME``, column).
    """

    source: OracleSource
    connect_string: str
    subscription: str
    slot: str
    publication: str
    tables: tuple[Table, ...]
    settings: ApplierSettings
    value_column: Callable[[str, Column, TargetColumn], ValueColumn]
    directory: Path | None = None
    batch_changes: int = 2_000
    conflict: ConflictPolicy = ConflictPolicy.ERROR
    container: str = ""
    omits: Callable[[str, str], bool] = lambda _table, _column: False
