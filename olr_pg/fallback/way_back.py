"""Defines the objects that the modules of the fallback share: the two databases, the tables, and
the conversion of values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from olr_pg.applier.settings import ApplierSettings, ConflictPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

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
        """An SQL expression; ``{}`` stands for the bind."""

    @property
    def further(self) -> Sequence[Sequence[object | None]]:
        """The values of further binds, for each further ``{}`` in the expression."""

    @property
    def altered(self) -> Sequence[AlteredValue]:
        """The values that a policy has changed."""


class AlteredValue(Protocol):
    """A value that a policy has changed; implemented by `oracle_values.Altered`."""

    @property
    def cause(self) -> str:
        """The reason why the value did not fit."""

    @property
    def policy(self) -> str:
        """The policy that was applied."""


class ValueColumn(Protocol):
    """Converts a column's values from PostgreSQL's binary form to Oracle's."""

    def bind(self, raw: Sequence[bytes | None]) -> BoundValues:
        """Convert values to values that python-oracledb can bind.

        Raises:
            OlrPgError: Oracle cannot store a value.
        """


class WayBack(NamedTuple):
    """The settings of the fallback to one PDB.

    Attributes:
        source: the Oracle database, with the fallback's account.
        connect_string: the connection string of PostgreSQL.
        subscription: the subscription of the replication from Oracle; its name identifies this
            fallback in Oracle's ledger.
        tables: the tables to replicate, from Oracle's dictionary.
        settings: the applier's settings, which map names to names of PostgreSQL.
        value_column: called with (``OWNER.NAME``, Oracle's column, PostgreSQL's type); returns the
            conversion of the column.
        directory: directory for the files of large transactions; None for the system's temporary
            directory.
        batch_changes: number of row changes after which a batch is committed in Oracle.
        conflict: the policy for a change whose row is missing in Oracle, and for an insert whose
            row already exists.
        container: the name of the PDB, if the source has several; otherwise empty.
        partial: ``OWNER.NAME`` of the tables of which a filter keeps rows out of PostgreSQL.
        omits: called with (``OWNER.NAME``, column); returns whether a column that Oracle lacks is
            left out.
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
    partial: frozenset[str] = frozenset()
    omits: Callable[[str, str], bool] = lambda _table, _column: False
