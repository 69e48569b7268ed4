"""What the way back works with: both sides, the tables, and how their values go back."""

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
    """Values of a column, as python-oracledb binds them; `oracle_values.Bound` is one."""

    @property
    def values(self) -> Sequence[object | None]:
        """One for each row."""

    @property
    def db_type(self) -> Any:
        """The type for `setinputsizes`."""

    @property
    def expression(self) -> str:
        """SQL around the bind, with ``{}`` in its place."""

    @property
    def altered(self) -> Sequence[AlteredValue]:
        """What a policy has changed."""


class AlteredValue(Protocol):
    """A value that a policy has changed; `oracle_values.Altered` is one."""

    @property
    def cause(self) -> str:
        """What did not fit."""

    @property
    def policy(self) -> str:
        """What was done."""


class ValueColumn(Protocol):
    """Turns a column's values in PostgreSQL's binary form into Oracle's."""

    def bind(self, raw: Sequence[bytes | None]) -> BoundValues:
        """Return what python-oracledb binds.

        Raises:
            OlrPgError: a value cannot go to Oracle.
        """


class WayBack(NamedTuple):
    """One way back.

    Attributes:
        source: Oracle, with the account that writes.
        connect_string: of PostgreSQL.
        subscription: of the forward way, names this one in Oracle's ledger.
        tables: those that go back, as Oracle's dictionary has them.
        settings: of the forward applier: they say what is called how in PostgreSQL.
        value_column: makes the conversion of a column: (``OWNER.NAME``, Oracle's, PostgreSQL's).
        directory: of the files for large transactions; None for the system's.
        batch_changes: row changes after which a batch is committed in Oracle.
        conflict: what becomes of a change that finds no row, or one where none may be.
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
