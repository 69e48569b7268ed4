"""The workload ``lobs``: tables with documents, whose redo is mostly LOB pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.lob_layout import BLOB, CLOB
from olr_pg.simulator.model.column_types import date_type, lob_type, number_type, varchar
from olr_pg.simulator.model.lobs import LobStorage
from olr_pg.simulator.model.tables import SimColumn
from olr_pg.simulator.sessions.placement import TableSpec
from olr_pg.simulator.sessions.workload import ACTIONS, RandomWorkload

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from olr_pg.simulator.model.tables import ColumnType, Logging
    from olr_pg.simulator.sessions.workload import LobUse

SIZE_MAX: Final = 128 * 1024
_WEIGHTS: Final = {
    "insert": 6,
    "fill_lob": 3,
    "update": 5,
    "write_lob": 1,
    "append_lob": 2,
    "trim_lob": 1,
    "delete": 1,
    "commit": 6,
    "rollback": 1,
}


class LobWorkload(RandomWorkload):
    """Inserts, updates and DBMS_LOB operations on two tables; values of up to 128 KiB."""

    def __init__(
        self, rng: Random, logging: Sequence[Logging], owner: str = "DOCS", *, lobs: LobUse
    ) -> None:
        super().__init__(rng, logging, owner, lobs=lobs)
        self._weights = [_WEIGHTS.get(action, 0) / ACTIONS.count(action) for action in ACTIONS]

    def tables(self) -> list[TableSpec]:
        """Return the tables DOCUMENTS, with SECUREFILE LOBs, and ARCHIVE, with BASICFILE LOBs."""
        return [
            self._of("DOCUMENTS", SimColumn("BODY", _lob(CLOB)), SimColumn("IMAGE", _lob(BLOB))),
            self._of(
                "ARCHIVE",
                SimColumn("CONTENT", _lob(BLOB, securefile=False)),
                SimColumn("LABEL", _lob(CLOB, securefile=False, size_max=4000)),
            ),
        ]

    def _of(self, name: str, *lobs: SimColumn) -> TableSpec:
        columns = (
            SimColumn("ID", number_type(12, 0), nullable=False),
            SimColumn("TITLE", varchar(100)),
            SimColumn("CHANGED", date_type()),
            *lobs,
        )
        return TableSpec(self._owner, name, columns, (0,), self._logging[0], (((0,), True),))


def _lob(kind: int, *, securefile: bool = True, size_max: int = SIZE_MAX) -> ColumnType:
    return lob_type(LobStorage(kind, securefile), size_max)
