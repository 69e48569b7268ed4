"""A database that takes SQL, for tests: its rows, and what decoding its logs makes of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.proving.logminer import LOST, decoded_events
from olr_pg.proving.replay import Moment, TableRows, check_replay, row_key
from olr_pg.scalars import format_rowid
from olr_pg.simulator.database_shape import demo_shape
from olr_pg.simulator.fields.cells import Cell
from olr_pg.simulator.model.lobs import LobCell, LobDraft, content_text
from olr_pg.simulator.simulated_files import log_files
from olr_pg.simulator.sql.database import SqlDatabase
from olr_pg.simulator.sql.scripts import run_script
from olr_pg.simulator.sql.sql_session import SqlSession

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.proving.replay import Rows
    from olr_pg.proving.scenario import Scenario
    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.sql.row_store import SqlTable
    from olr_pg.simulator.sql.sql_columns import SqlColumn
    from olr_pg.simulator.sql.typed_values import Value

SHAPES: Final[dict[str, dict[str, Any]]] = {
    "rac": {"threads": 2},
    "pdb": {"con_id": 3, "neighbour": True},
}
"""What a scenario needs that the stand-in has where it is asked for."""

RENAMES: Final = re.compile(r"\bRENAME\s+(?!COLUMN\b)", re.IGNORECASE)
"""A statement that gives a table another name."""


def recorded(folder: Path, scenario: Scenario, shape: DatabaseShape | None = None) -> Recorded:
    """Carry a scenario out, in the usual database or another one."""
    shape = shape or demo_shape()
    for need in scenario.needs:
        shape = replace(shape, **SHAPES[need])
    made = Recorded(folder, sum(scenario.name.encode()), shape)
    run_script(made.database, scenario.steps[: scenario.start])
    made.start()
    run_script(made.database, scenario.steps[scenario.start :])
    return made


class Judged(NamedTuple):
    """What the judge that replays is given (`proving.replay`).

    Attributes:
        logs: their paths.
    """

    snapshot: Snapshot
    tables: tuple[Table, ...]
    logs: tuple[str, ...]
    start: Moment
    moments: tuple[Moment, ...]


class Recorded:
    """A database whose logs are in a folder.

    Attributes:
        moments: the rows of every table as each commit and each DDL left them.
        names: those of the start by those of now, behind each DDL.
    """

    def __init__(self, folder: Path, seed: int = 1, shape: DatabaseShape | None = None) -> None:
        self.folder = folder
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        self.logs: list[Path] = []
        archive = log_files(folder / "logs", self.logs)
        self.database = SqlDatabase(seed, shape or demo_shape(), archive)
        self.session = SqlSession(self.database)
        self.moments: list[Moment] = []
        self.names: list[tuple[int, dict[str, str]]] = []

    def run(self, *statements: str) -> int:
        """Carry statements out; how many rows the last one concerned."""
        return [self.session.execute(one).count for one in statements][-1]

    def rows(self, query: str, *binds: Value) -> list[tuple[Any, ...]]:
        return [tuple(map(plain, row)) for row in self.session.execute(query, binds).rows]

    def start(self) -> None:
        """From here on changes are judged."""
        start = self.database.begin_recording()
        write_snapshot(start, str(self.folder / "dictionary.json"))
        for log in self.logs:
            log.unlink()
        self.logs.clear()
        self.followed = {one.sim.full_name: one for one in self.database.tables.values()}
        self._note_names(start.scn)
        self._note(start.scn)
        self.first = self.moments.pop()
        self.database.committed = self._note_commit
        self.database.changed = self._note_definitions

    @property
    def _left(self) -> list[tuple[str, SqlTable]]:
        """The tables of the start that there are: another one may have taken a name."""
        now = list(self.database.tables.values())
        return [(name, one) for name, one in self.followed.items() if one in now]

    def _note(self, scn: int) -> None:
        if self.moments and self.moments[-1].scn >= scn:  # several commits may have one SCN
            self.moments.pop()
        tables = {name: rows_at(one, scn) for name, one in self._left}
        self.moments.append(Moment(scn, 0, tables))

    def _note_commit(self) -> None:
        if self.database.instance.committed:  # locks alone are no transaction of it
            self._note(self.database.instance.committed[-1].commit_scn)

    def _note_definitions(self) -> None:
        scn = self.database.instance.scn
        self._note(scn - 1)
        self._note_names(scn)

    def _note_names(self, scn: int) -> None:
        self.names.append((scn, {one.sim.full_name: name for name, one in self._left}))

    def _name_at(self, name: str, scn: int) -> str:
        """What a table was called at the start."""
        return next(own for at, own in reversed(self.names) if at <= scn)[name]

    def end(self) -> Judged:
        """Shut the database down; return what is judged."""
        self.database.shut_down()
        self._note(self.database.instance.scn)
        snapshot = load_snapshot(str(self.folder / "dictionary.json"))
        tables = tuple(one for one in snapshot.tables if one.full_name in self.followed)
        logs = tuple(map(str, self.logs))
        return Judged(snapshot, tables, logs, self.first, tuple(self.moments))

    def check_replay(self) -> int:
        """Rows at the start and decoded changes are the rows at each commit; how many commits.

        That is what `olr-pg prove` judges by. Here a table is followed under another name, too,
        and what is reported as not whole is not whole.
        """
        judged = self.end()
        events = decoded_events(judged.snapshot, judged.logs, judged.tables, self.folder)
        told = [self._told(one) for one in events if not RENAMES.search(one.get("text", ""))]
        assert check_replay(judged.start, judged.moments, told) == []
        lost = {(one["table"], one["rowid"], one["column"]) for one in told if one["op"] == LOST}
        assert lost <= self._unread()
        return sum(one["op"] == "commit" for one in told)

    def _told(self, event: dict[str, Any]) -> dict[str, Any]:
        """An event under the name that the table had at the start."""
        if event["op"] not in ("insert", "update", "delete"):
            return event
        return event | {"table": self._name_at(event["table"], int(event["commit_scn"]))}

    def _unread(self) -> set[tuple[str, str, str]]:
        """The LOB values that redo does not hold whole, by table, row and column."""
        return {
            (
                change.table.full_name,
                format_rowid(change.dataobj, change.dba, change.slot),
                change.table.columns[at].name,
            )
            for transaction in self.database.instance.committed
            for change in transaction.changes
            for at, cell in change.after.items()
            if isinstance(cell, LobCell) and transaction.lobs.value(cell.stored) is None
        }


def rows_at(table: SqlTable, scn: int) -> TableRows:
    """The rows at an SCN, as `olr-pg decode` prints values."""
    shown = [(at, column) for at, column in enumerate(table.columns) if column.name]
    primary = table.primary_key
    key: tuple[str, ...] = ()
    if table.sim.index_organised and primary is not None:
        key = tuple(column.name for at, column in shown if at in primary.columns)
    found: Rows = {}
    for stored, values in table.scan(None, scn):
        image = {column.name: _json(column, values[at]) for at, column in shown}
        found[row_key(image, key) if key else stored.row.rowid] = image
    return TableRows(tuple(column.name for _, column in shown), key, found)


def _json(column: SqlColumn, value: Value) -> Any:
    cell = column.cell(value)
    if cell is None:
        return None
    text = cell.json
    if isinstance(cell, LobDraft):
        assert column.storage is not None
        text = content_text(column.storage, cell.content)
    assert isinstance(cell, Cell)
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def plain(value: Any) -> Any:
    """A value as a test writes it."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else value
    if isinstance(value, str):
        return str(value)
    return bytes(value) if isinstance(value, bytes) else value
